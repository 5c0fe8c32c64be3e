/** `cinnabar controls`: what can be run, and with which arguments. */
import type { Command } from 'commander'
import { SECRET_ARGUMENTS } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { printable } from '../format.ts'
import { formatTable, JSON_OPTION, type JsonOptions, jsonOf } from '../output.ts'
import {
  type AnswerRecord,
  type CataloguedArgument,
  fieldText,
  findField,
  listControls,
  parametersOf,
  parametersText,
} from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'

export function addControls(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('controls'))
    .description('list the controls that you may run; one of them with its arguments and an example')
    .argument('[control]', "a control, or several with *: 'channel.*'")
    .option(...JSON_OPTION)
    .action((name: string | undefined, options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const controls = await withProgress(terminal, 'reading the controls', listControls(consumer, name))
        const [first] = controls
        if (first === undefined) {
          const advice = '`cinnabar controls` lists those that you may run; another user may run more: see --user'
          throw new Failure(ExitCode.FAILED, `no control matches ${name ?? '*'}\n${advice}`)
        }
        if (options.json) return terminal.print(controls.map(jsonOf).join('\n'))
        const isOne = name !== undefined && !name.includes('*')
        await terminal.print(isOne ? details(first, terminal) : overview(controls, terminal))
      }),
    )
}

function overview(controls: readonly AnswerRecord[], { colors, screen }: Terminal): string {
  const waits = controls.some((control) => approversOf(control) !== '')
  const heads = ['control', 'arguments', ...(waits ? ['approved by'] : []), 'description'].map((head) => ({ head }))
  const rows = controls.map((control) => {
    const more = waits ? [approversOf(control)] : []
    return [fieldText(control, 'name'), parametersText(control), ...more, fieldText(control, 'description')]
  })
  return formatTable(heads, rows, colors, screen?.size().columns)
}

/** The roles whose users may have to approve a call; empty if none has to. */
function approversOf(control: AnswerRecord): string {
  return String(findField(control, 'approval')?.value ?? '')
    .split('\n')
    .map(printable)
    .join(' or ')
}

function details(control: AnswerRecord, { program, colors, screen }: Terminal): string {
  const name = fieldText(control, 'name')
  const approvers = approversOf(control)
  const parameters = parametersOf(control)
  const isBound = parameters.some(({ bounds }) => bounds !== '')
  const heads = ['argument', 'type', '', ...(isBound ? ['takes'] : []), 'description'].map((head) => ({ head }))
  const rows = parameters.map(({ name, type, isOptional, bounds, description }) => {
    return [name, type, isOptional ? 'optional' : 'required', ...(isBound ? [bounds] : []), description]
  })
  return [
    `${colors.bold(name)}  ${fieldText(control, 'description')}`,
    '',
    rows.length === 0 ? 'It takes no arguments of its own.' : formatTable(heads, rows, colors, screen?.size().columns),
    ...(approvers === ''
      ? []
      : ['', `A call may have to be approved by a user of the role ${approvers}: then it waits.`]),
    '',
    // [MON 10]
    `Every control also takes idempotency_key and dry_run: see \`${program} exec --help\`.`,
    '',
    `Example: ${colors.bold([program, 'exec', name, ...exampleArguments(parameters)].join(' '))}`,
  ].join('\n')
}

/** Those that a call needs; if it needs none, the first. */
function exampleArguments(parameters: readonly CataloguedArgument[]): string[] {
  const required = parameters.filter(({ isOptional }) => !isOptional)
  return (required.length > 0 ? required : parameters.slice(0, 1)).map(({ name, type, isSecret }) => {
    if (isSecret || SECRET_ARGUMENTS.includes(name)) return `--arg-file ${name}=FILE`
    return `${name}=${VALUES[type] ?? name.toUpperCase()}`
  })
}

/** An example of a value by its type. */
const VALUES: Readonly<Record<string, string>> = {
  boolean: 'true',
  int32: '1',
  int64: '1',
  uint32: '1',
  uint64: '1',
  double: '0.5',
}
