/** Completion for fish, which quotes what it inserts by itself. */
import type { CommandNode, Expected, OptionNode } from './tree.ts'

export function fishScript(tree: readonly CommandNode[]): string {
  return `# Completion of cinnabar for fish, made by \`cinnabar completion fish\`.
# Whether a command is being typed, and perhaps its argument at a place, counted from 0.
function __cinnabar_at
    set -l route ''
    set -l place 0
    set -l isvalue 0
    for word in (commandline -opc)[2..-1]
        if test $isvalue = 1
            set isvalue 0
            continue
        end
        switch "$route:$word"
${tree.flatMap(moves).join('\n')}
            case '*:-*'
            case '*'
                set place (math $place + 1)
        end
    end
    test "$route" = "$argv[1]"; and begin
        not set -q argv[2]; or test "$argv[2]" = $place
    end
end
function __cinnabar_ask
    set -l words (commandline -opc)
    command $words[1] complete $argv[1] -- $words[2..-1] (commandline -ct) 2>/dev/null </dev/null
end
complete -c cinnabar -f
${tree.flatMap(completions).join('\n')}`
}

/** The words that lead to a subcommand, and the options that take the next word. */
function moves({ route, commands, options }: CommandNode): string[] {
  const valued = options.filter(({ value }) => value !== undefined).flatMap(({ flags }) => flags)
  return [
    ...commands.flatMap(({ name }) => [
      `            case ${quoted(`${route}:${name}`)}`,
      `                set route ${quoted(route === '' ? name : `${route} ${name}`)}`,
      '                set place 0',
    ]),
    ...(valued.length === 0
      ? []
      : [
          `            case ${valued.map((flag) => quoted(`${route}:${flag}`)).join(' ')}`,
          '                set isvalue 1',
        ]),
  ]
}

function completions({ route, commands, options, places }: CommandNode): string[] {
  const at = (place?: number) => quoted(`__cinnabar_at ${quoted(route)}${place === undefined ? '' : ` ${place}`}`)
  const line = (place: number | undefined, rest: string) => `complete -c cinnabar -n ${at(place)} ${rest}`
  return [
    ...commands.map(({ name, description }) => line(0, `-a ${quoted(name)} -d ${quoted(description)}`)),
    ...options.map((option) => line(undefined, toFlags(option))),
    ...places
      .map(({ expected, isRepeated }, i) => ({ expected, place: isRepeated ? undefined : i }))
      .filter(({ expected }) => expected.kind !== 'anything')
      .map(({ expected, place }) => line(place, expected.kind === 'file' ? '-F' : `-a ${listed(expected)}`)),
  ]
}

function toFlags({ flags, description, value }: OptionNode): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const takes = value === undefined ? [] : [value.kind === 'file' ? '-r -F' : `-x${list(value)}`]
  return [...names, ...takes, `-d ${quoted(description)}`].join(' ')
}

function list(value: Expected): string {
  return value.kind === 'anything' ? '' : ` -a ${listed(value)}`
}

function listed(expected: Expected): string {
  return quoted(expected.kind === 'choice' ? expected.choices.join(' ') : `(__cinnabar_ask ${expected.kind})`)
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
