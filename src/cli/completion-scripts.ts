export type Shell = "bash" | "zsh" | "fish" | "powershell";

/**
 * The completion scripts of the shells. Each passes the typed words to `agent-gateway complete --`, which prints a value and its description in
 * each line. The scripts do not evaluate, expand or redirect the typed words.
 */
export const SCRIPTS: Record<Shell, string> = {
  bash: `# bash completion for agent-gateway

_agent_gateway() {
    local line=$COMP_LINE word reply prefix="" i
    local -a words=()
    COMPREPLY=()
    # Bash splits words at = and :. Words without a space in between are one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=\${COMP_WORDS[i]}
        if ((i > 0)) && [[ -n $word && $line != [[:space:]]* ]]; then
            words[\${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        line=\${line#"\${line%%[![:space:]]*}"}
        line=\${line#"$word"}
    done
    # Where bash does not split at =, a completed value takes the place of its option, too.
    [[ \${COMP_WORDS[COMP_CWORD]} == -*=* ]] && prefix=\${COMP_WORDS[COMP_CWORD]%%=*}=
    while IFS= read -r reply; do
        [[ $reply == :* ]] || COMPREPLY+=("$prefix\${reply%%$'\\t'*}")
    done < <(agent-gateway complete -- "\${words[@]:1}" 2>/dev/null)
}

complete -F _agent_gateway agent-gateway
`,

  zsh: `#compdef agent-gateway
compdef _agent-gateway agent-gateway

_agent-gateway() {
    local reply value
    local -a replies
    for reply in "\${(@f)$(agent-gateway complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
        [[ -z $reply || $reply == :* ]] && continue
        value=\${reply%%$'\\t'*}
        replies+=("\${value//:/\\\\:}:\${reply#*$'\\t'}")
    done
    compset -P '-*='
    _describe agent-gateway replies
}

# Zsh runs a file of the function path for the first completion.
if [ "\${funcstack[1]}" = "_agent-gateway" ]; then
    _agent-gateway "$@"
fi
`,

  fish: `# fish completion for agent-gateway

function __agent_gateway_replies
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l prefix (string match --regex -- '^-[^=]*=' "$current")
    set -e words[1]
    for reply in (agent-gateway complete -- $words "$current" 2>/dev/null)
        string match --quiet --regex -- '^:' "$reply"; or printf '%s%s\\n' "$prefix" "$reply"
    end
end

complete --command agent-gateway --erase
complete --command agent-gateway --no-files --arguments '(__agent_gateway_replies)'
`,

  powershell: `# PowerShell completion for agent-gateway

Register-ArgumentCompleter -Native -CommandName 'agent-gateway' -ScriptBlock {
    param($WordToComplete, $CommandAst, $CursorPosition)

    # The texts of the words, not their values. Where the program is a batch file, cmd.exe would evaluate other characters than these.
    $Words = @($CommandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.StartOffset -lt $CursorPosition } |
        ForEach-Object { $_.Extent.Text -replace '[^\\w.:/=-]', '_' })
    # The quotes stand for an empty word, which some versions of PowerShell do not pass.
    if ($WordToComplete -eq '') { $Words += '""' }
    $Prefix = if ($WordToComplete -match '^-[^=]*=') { $Matches[0] } else { '' }

    & agent-gateway complete '--' @Words 2>$null | Where-Object { $_ -notlike ':*' } | ForEach-Object {
        $Value, $Description = $_ -split "\`t", 2
        if (-not $Description) { $Description = $Value }
        [System.Management.Automation.CompletionResult]::new($Prefix + $Value, $Value, 'ParameterValue', $Description)
    }
}
`,
};
