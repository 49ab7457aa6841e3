import { Argument, type Command } from "commander";

/** The command for the help. `../completion.ts` adds the action when the command is called. */
export function addCompletion(program: Command): void {
  program
    .command("completion")
    .summary("print a script that completes commands in a shell")
    .description("Prints a script for a shell that completes commands, options and their choices.")
    .addArgument(
      new Argument("<shell>", "bash, zsh, fish or powershell").choices(["bash", "zsh", "fish", "powershell"]),
    )
    .addHelpText(
      "after",
      '\nFor bash, the example uses the folder of the package bash-completion. Without the package, write the script to\nanother file and source it in ~/.bashrc.\n\nExamples:\n  agent-gateway completion bash > ~/.local/share/bash-completion/completions/agent-gateway\n  agent-gateway completion zsh > "$fpath[1]/_agent-gateway"\n  agent-gateway completion fish > ~/.config/fish/completions/agent-gateway.fish\n  agent-gateway completion powershell >> $PROFILE',
    );
}
