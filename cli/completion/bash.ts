/**
 * Completion for bash. Names of metrics are made up by whoever sends them: they are never handed to `compgen -W`, which
 * would expand what stands in them, and go to the command line quoted.
 */
import { askedKinds, type CommandNode } from './tree.ts'
import { placeCases, quoted, wordCases } from './walk.ts'

export function bashScript(tree: readonly CommandNode[]): string {
  const options = tree.map(({ route, options }) => {
    const flags = options.flatMap((option) => option.flags)
    return `${quoted(route)}) kind=${quoted(`choice ${flags.join(' ')}`)} ;;`
  })
  return `# Completion of cinnabar for bash, made by \`cinnabar completion bash\`.
_cinnabar() {
  local IFS=$' \\t\\n'
  local line=\${COMP_LINE:0:COMP_POINT} piece=\${COMP_WORDS[COMP_CWORD]} route='' kind='' also='' place=0 front='' word i
  local -a words
  # Not COMP_WORDS: there, what holds a colon or "=" is in pieces, of which the last one is replaced.
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local last=$((\${#words[@]} - 1))
  local current=\${words[last]}
  [[ $piece == [:=] ]] && piece=''
  local whole=$current
  for ((i = 1; i < last; i++)); do
    if [[ -n $kind ]]; then
      kind=''
      continue
    fi
    word=\${words[i]}
    case "$route:$word" in
${indented(wordCases(tree), 6)}
      *:-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $kind && $current == --*=* ]]; then
    front=\${current%%=*}=
    case "$route:\${current%%=*}" in
${indented(wordCases(tree), 6)}
    esac
    current=\${current#*=}
  elif [[ -z $kind && $current == -* ]]; then
    case "$route" in
${indented(options, 6)}
    esac
  elif [[ -z $kind ]]; then
    case "$route:$place" in
${indented(placeCases(tree), 6)}
    esac
  fi
  local -a found=()
  read -ra found <<< "$also"
  case "$kind" in
    'choice '*) read -ra found <<< "\${kind#choice }" ;;
    file)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do found+=("$word"); done < <(compgen -f -- "$current")
      ;;
    ${askedKinds.join('|')})
      while IFS= read -r word; do found+=("$(printf '%q' "$word")"); done < <(
        "$1" complete "$kind" -- "\${words[@]:1}" 2> /dev/null < /dev/null
      )
      ;;
  esac
  COMPREPLY=()
  local before=\${whole%"$piece"}
  for word in "\${found[@]}"; do
    [[ $word == "$current"* ]] || continue
    word=$front$word
    COMPREPLY+=("\${word#"$before"}")
  done
}
complete -F _cinnabar cinnabar`
}

function indented(lines: readonly string[], by: number): string {
  return lines.map((line) => ' '.repeat(by) + line).join('\n')
}
