import type { SdkDescription } from "./description.ts";
import { header } from "./python-text.ts";
import { capital, docstring } from "./python-types.ts";

const OWN_NAMES: Record<string, string> = { internal: "InternalError" };
export function className(name: string): string {
  return OWN_NAMES[name] ?? (name.endsWith("-error") ? capital(name) : `${capital(name)}Error`);
}

/** The parents of errors, by their status. */
const FAMILIES: Record<string, string> = {
  400: "BadRequestError",
  401: "AuthenticationError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  409: "ConflictError",
  429: "TooManyRequestsError",
  "5xx": "ServerError",
};
function familyOf(status: number): string | undefined {
  return FAMILIES[status >= 500 ? "5xx" : status];
}
function isFamily({ name }: { name: string }): boolean {
  return Object.values(FAMILIES).includes(className(name));
}

export function printErrors({ errors }: SdkDescription): string {
  return `${header("errors.yaml", "The gateway's errors, one class for each name.")}
from typing import Dict, FrozenSet, Optional, Type

from ._error import APIStatusError, GatewayError

__all__ = [
${[...errors.map(({ name }) => className(name)), ...Object.values(FAMILIES)]
  .filter((name, index, all) => all.indexOf(name) === index)
  .sort()
  .map((name) => `    "${name}",\n`)
  .join("")}]

${Object.entries(FAMILIES)
  .filter(([, family]) => !errors.some(({ name }) => className(name) === family))
  .map(
    ([status, family]) => `
class ${family}(APIStatusError):
    """${status === "5xx" ? "The gateway answered with a status from 500 on." : `The gateway answered with the status ${status}.`}"""

`,
  )
  .join("")}${errors
  .toSorted((a, b) => Number(isFamily(b)) - Number(isFamily(a)))
  .map((error) => ({
    ...error,
    parent: isFamily(error) ? "APIStatusError" : (familyOf(error.status) ?? "APIStatusError"),
  }))
  .map(
    ({ name, meaning, parent }) => `
class ${className(name)}(${parent}):
${docstring(meaning, "    ")}
    name = "${name}"

`,
  )
  .join("")}
BY_NAME: Dict[str, Type[GatewayError]] = {
    error.name: error
    for error in (
${errors.map(({ name }) => `        ${className(name)},\n`).join("")}    )
}

RETRIED: FrozenSet[str] = frozenset(
    [
${errors
  .filter(({ retry }) => retry)
  .map(({ name }) => `        "${name}",\n`)
  .join("")}    ]
)
"""The errors after which the same call may succeed."""

_FAMILIES: Dict[int, Type[GatewayError]] = {
${Object.entries(FAMILIES)
  .filter(([status]) => status !== "5xx")
  .map(([status, family]) => `    ${status}: ${family},\n`)
  .join("")}}


def family_of(status: Optional[int]) -> Type[GatewayError]:
    """The class of an error whose name this client does not know."""
    if status is None:
        return GatewayError
    return ServerError if status >= 500 else _FAMILIES.get(status, APIStatusError)
`;
}
