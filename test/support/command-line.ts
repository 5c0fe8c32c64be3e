/** The command line as docs/cli.md has it, made from the program itself. */
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import type { Cli } from '../../cli/session.ts'

/** Only what is declared is looked at: nothing is printed, and nobody is connected to. */
const NOWHERE = { terminal: {} } as unknown as Cli

/** Of every command that asks a server; explained once. */
const LOGIN = ['--url', '--user', '--secret-file', '--token-file', '--wrap', '--ca', '--cert', '--key', '--config']

export function commandLine(): string {
  return chapters(createProgram(NOWHERE), '').join('\n')
}

function chapters(command: Command, parents: string): string[] {
  const help = command.createHelp()
  const inner = help.visibleCommands(command).filter((one) => one.name() !== 'help')
  const route = [parents, command.name()].filter(Boolean).join(' ')
  // What only holds others has neither arguments nor options, but for --help; the program itself has --version.
  const isGroup = parents === '' || (command.registeredArguments.length === 0 && command.options.length === 0)
  const own = inner.length > 0 && isGroup ? [] : [chapter(command, route)]
  return [...own, ...inner.flatMap((one) => chapters(one, route))]
}

function chapter(command: Command, route: string): string {
  const help = command.createHelp()
  const words = command.registeredArguments.map((argument) => {
    const name = argument.name() + (argument.variadic ? '...' : '')
    return argument.required ? `<${name}>` : `[${name}]`
  })
  const options = help.visibleOptions(command).filter((option) => option.long !== '--help')
  const asks = LOGIN.every((flag) => options.some(({ long }) => long === flag))
  const rows = [
    ...help.visibleArguments(command).map((one) => [`\`${one.name()}\``, help.argumentDescription(one)]),
    ...options
      .filter(({ long }) => !asks || !LOGIN.includes(long ?? ''))
      .map((option) => [`\`${option.flags}\``, help.optionDescription(option)]),
    ...(asks ? [[LOGIN.map((flag) => `\`${flag}\``).join(' '), '[who asks whom](#who-asks-whom)']] : []),
  ]
  const table = rows.map((cells) => `| ${cells.map((cell) => (cell ?? '').replaceAll('|', '\\|')).join(' | ')} |\n`)
  return [
    `### ${route}\n`,
    `\`${[route, ...words].join(' ')}\`: ${command.description()}.\n`,
    ...(rows.length > 0 ? [`| | |\n|---|---|\n${table.join('')}`] : []),
  ].join('\n')
}
