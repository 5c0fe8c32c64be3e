/** The commands, options and arguments of the program, read from commander. The shell scripts are made from this alone. */
import type { Argument, Command, Option } from 'commander'

/** What an argument can be: a name that only the server knows, a file, one of several words, or anything. */
export type ArgumentKind =
  | { readonly kind: 'metric' | 'control' | 'channel' | 'sensor' | 'file' | 'anything' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }

/** The kinds of names that are looked up at the server. */
export const lookedUpKinds = ['metric', 'control', 'channel', 'sensor'] as const

export interface CommandNode {
  /** The words of the command, such as "user add"; empty for the program. */
  readonly route: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly OptionNode[]
  readonly places: readonly { readonly expected: ArgumentKind; readonly isRepeated: boolean }[]
}

export interface OptionNode {
  /** Such as `-h` and `--help`. */
  readonly flags: readonly string[]
  readonly description: string
  /** Undefined if the option takes no value. */
  readonly value: ArgumentKind | undefined
}

/** Returns the program, followed by all its visible commands. */
export function readTree(command: Command, route = ''): CommandNode[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const node: CommandNode = {
    route,
    commands: commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map(toOption),
    places: command.registeredArguments.map((argument) => ({
      expected: kindOfArgument(argument),
      isRepeated: argument.variadic,
    })),
  }
  return [node, ...commands.flatMap((one) => readTree(one, route === '' ? one.name() : `${route} ${one.name()}`))]
}

function toOption(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: option.required || option.optional ? kindOfArgument(option) : undefined,
  }
}

/** Derived from the declared choices, the name of the value, or the name of the option itself. */
function kindOfArgument(declared: Argument | Option): ArgumentKind {
  if (declared.argChoices) return { kind: 'choice', choices: declared.argChoices }
  const names =
    'flags' in declared ? [/[<[]([^>\]]+)/.exec(declared.flags)?.[1], declared.attributeName()] : [declared.name()]
  for (const name of names) {
    if (name === 'metric' || name === 'pattern') return { kind: 'metric' }
    if (name === 'control' || name === 'channel' || name === 'sensor' || name === 'file') return { kind: name }
  }
  return { kind: 'anything' }
}
