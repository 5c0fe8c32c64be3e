/** Completion for zsh: autoloaded as _cinnabar, or sourced behind compinit. zsh quotes what it inserts by itself. */
import { askedKinds, type CommandNode } from './tree.ts'
import { placeCases, quoted, told, wordCases } from './walk.ts'

export function zshScript(tree: readonly CommandNode[]): string {
  const options = tree.map(({ route, options }) => {
    const described = options.flatMap(({ flags, description }) => flags.map((flag) => item(flag, description)))
    return `${quoted(route)}) described=(${described.join(' ')}) ;;`
  })
  const commands = tree
    .filter(({ commands }) => commands.length > 0)
    .map(({ route, commands, places: [first] }) => {
      const described = commands.map(({ name, description }) => item(name, description))
      const kind = first && first.expected.kind !== 'anything' ? ` kind=${quoted(told(first.expected))}` : ''
      return `${quoted(`${route}:0`)}) described=(${described.join(' ')})${kind} ;;`
    })
  const places = placeCases(tree.filter(({ commands }) => commands.length === 0))
  return `#compdef cinnabar
# Completion of cinnabar for zsh, made by \`cinnabar completion zsh\`.
_cinnabar() {
  local route='' kind='' word=''
  local -i place=0 i
  local -a described found
  for ((i = 2; i < CURRENT; i++)); do
    if [[ -n $kind ]]; then
      kind=''
      continue
    fi
    word=\${(Q)words[i]}
    case "$route:$word" in
${indented(wordCases(tree), 6)}
      *:-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $kind && $PREFIX == --*=* ]]; then
    case "$route:\${PREFIX%%=*}" in
${indented(wordCases(tree), 6)}
    esac
    compset -P '*='
  elif [[ -z $kind && $PREFIX == -* ]]; then
    case "$route" in
${indented(options, 6)}
    esac
    _describe -o option described
    return
  elif [[ -z $kind ]]; then
    case "$route:$place" in
${indented([...commands, ...places], 6)}
    esac
  fi
  if (( \${#described} )); then
    _describe command described
  fi
  case "$kind" in
    'choice '*) compadd -- \${=kind#choice } ;;
    file) _files ;;
    ${askedKinds.join('|')})
      found=("\${(@f)$("\${(Q)words[1]}" complete "$kind" -- "\${(@Q)words[2,CURRENT]}" 2> /dev/null < /dev/null)}")
      [[ -n $found[1] ]] && compadd -- "\${found[@]}"
      ;;
  esac
}
if [[ $funcstack[1] == _cinnabar ]]; then
  _cinnabar "$@"
else
  compdef _cinnabar cinnabar
fi`
}

/** "name:description", where a colon ends the name. */
function item(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${description}`)
}

function indented(lines: readonly string[], by: number): string {
  return lines.map((line) => ' '.repeat(by) + line).join('\n')
}
