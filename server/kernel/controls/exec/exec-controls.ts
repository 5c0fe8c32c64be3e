/** Programs as controls [MON 10], from the `[[exec]]` tables of the configuration, which no command can change. */
import { createHash } from 'node:crypto'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import type { Clock } from '../../core/clock.ts'
import type { Control, ControlArguments, ControlResult, ControlRun } from '../control.ts'
import type { ExecTable, ProgramTemplate } from './config.ts'
import { type Ended, type Program, runProgram } from './program.ts'
import { FIXED_PATH, type LocatedProgram, locatePrograms } from './program-lookup.ts'
import { fillTemplate } from './template.ts'
import { checkDash, declaredParameter, textsOf } from './values.ts'

/** Bytes of the output of a dry run: whoever approves has to read it. */
const MAX_DRY_OUTPUT = 16_384

/** Throws ConfigError for programs and users that are not there. */
export function execControls(tables: readonly ExecTable[], clock: Pick<Clock, 'setTimeout' | 'clear'>): Control[] {
  const found = locatePrograms(tables)
  return tables.map((table, index) => execControl(table, found[index] as LocatedProgram, clock))
}

export function execControl(
  table: ExecTable,
  found: LocatedProgram,
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
): Control {
  const { parameters, dryRunArgv, maxOutput } = table
  const declared = parameters.map(declaredParameter)
  const fill = (argv: ProgramTemplate, given: ControlArguments): Program => {
    const texts = textsOf(given, declared)
    for (const template of argv.slice(1)) checkDash(template, texts, parameters)
    return programOf(table, argv, found, texts)
  }
  const dryRun = (argv: ProgramTemplate, path: string, given: ControlArguments): ControlRun => {
    const program = { ...fill(argv, given), path, maxOutput: Math.min(maxOutput, MAX_DRY_OUTPUT) }
    return async (signal) => {
      const result = resultOf(await runProgram(program, clock, signal), table)
      if (result.outcome === 'ok') return { ...result, outcome: 'dry-run', detail: 'nothing but the dry run has run' }
      return { ...result, detail: `the dry run has failed, and nothing else has run: ${result.detail}` }
    }
  }
  return {
    name: table.name,
    description: table.description,
    parameters: declared,
    tenants: table.tenants,
    maxRunning: table.maxRunning,
    definition: definitionOf(table, found),
    prepare(given) {
      const program = fill(table.argv, given)
      return async (signal) => resultOf(await runProgram(program, clock, signal), table)
    },
    ...(dryRunArgv && { dryRun: (given) => dryRun(dryRunArgv, found.dryRunPath ?? '', given) }),
  }
}

/** Names everything of a table and of the programs that were found for it. */
function definitionOf(table: ExecTable, found: LocatedProgram): string {
  const text = JSON.stringify([table, found], (_key, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  )
  return createHash('sha256').update(text).digest('hex')
}

function programOf(
  table: ExecTable,
  argv: ProgramTemplate,
  { path, user }: LocatedProgram,
  texts: ReadonlyMap<string, string>,
): Program {
  const textFor = (name: string): string | undefined => texts.get(name)
  const environment: Record<string, string> = { PATH: FIXED_PATH, LANG: 'C.UTF-8' }
  for (const { name, value } of table.environment) {
    const text = fillTemplate(value, textFor)
    if (text !== undefined) environment[name] = text
  }
  return {
    path,
    // An argument that contains an omitted parameter is omitted.
    argv: argv.slice(1).flatMap((template) => fillTemplate(template, textFor) ?? []),
    environment,
    directory: table.directory,
    user,
    stdin: table.stdin && fillTemplate(table.stdin, textFor),
    timeoutMs: table.timeoutMs,
    maxOutput: table.maxOutput,
  }
}

function resultOf(ended: Ended, { timeoutMs }: ExecTable): ControlResult {
  const { end, cause } = ended
  const value = valueFrom(ended)
  if (cause === 'timeout') return { outcome: 'timeout', detail: `ended after ${timeoutMs} ms`, value }
  if (cause === 'stop') return { outcome: 'failed', detail: 'ended because the producer stopped', value }
  if ('error' in end) return { outcome: 'failed', detail: `the program could not be started: ${end.error}`, value }
  if ('signal' in end) return { outcome: 'failed', detail: `ended by ${end.signal}`, value }
  return end.exit === 0
    ? { outcome: 'ok', detail: '', value }
    : { outcome: 'failed', detail: `exit code ${end.exit}`, value }
}

/** REC {int32 exit, or string signal; string stdout, stderr; boolean truncated}. */
function valueFrom({ end, stdout, stderr, truncated }: Ended): Value {
  const how: Field[] =
    'exit' in end
      ? [{ name: 'exit', type: BasicType.INT32, value: end.exit }]
      : 'signal' in end
        ? [{ name: 'signal', type: BasicType.STRING, value: end.signal }]
        : []
  const fields: Field[] = [
    ...how,
    { name: 'stdout', type: BasicType.STRING, value: stdout },
    { name: 'stderr', type: BasicType.STRING, value: stderr },
    { name: 'truncated', type: BasicType.BOOLEAN, value: truncated },
  ]
  return { type: BasicType.REC, value: fields }
}
