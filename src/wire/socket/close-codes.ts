/** What the gateway closes a WebSocket with. docs/websocket.md says what each means to the other side. */
export const CLOSE = {
  /** A binary message came. */
  notText: 1003,
  /** Never sent: nobody was there to read it. */
  unanswered: 1006,
  restart: 1012,
  tooSlow: 1013,
  tokenGone: 4401,
  permissionGone: 4403,
} as const;

/** The codes that `ws` closes with by itself, by the fault that it names; 0 for what is no fault of a frame. */
export const codeOfFault = (fault = ""): number => CODES[fault] ?? (fault.startsWith("WS_ERR_") ? BROKEN_FRAME : 0);

const BROKEN_FRAME = 1002;
const CODES: Record<string, number> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};
