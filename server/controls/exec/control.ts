/** A program as a control [MON 10]: from an `[[exec]]` table, which no command can change. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { ExecTable } from '../../controls/exec/config.ts'
import type { Clock } from '../../core/clock.ts'
import type { Control, ControlResult } from '../control.ts'
import { FIXED_PATH, type Found, findAll } from './found.ts'
import { type Ended, type Program, runProgram } from './program.ts'
import { fill } from './template.ts'
import { checkDash, declared, judgeOf, textsOf } from './values.ts'

/** Throws ConfigError for programs and users that are not there. */
export function execControls(tables: readonly ExecTable[], clock: Pick<Clock, 'setTimeout' | 'clear'>): Control[] {
  const found = findAll(tables)
  return tables.map((table, index) => execControl(table, found[index] as Found, clock))
}

export function execControl(table: ExecTable, found: Found, clock: Pick<Clock, 'setTimeout' | 'clear'>): Control {
  const { parameters } = table
  const judges = new Map(parameters.map((parameter) => [parameter.name, judgeOf(parameter)]))
  return {
    name: table.name,
    description: table.description,
    parameters: parameters.map(declared),
    tenants: table.tenants,
    maxRunning: table.maxRunning,
    prepare(given) {
      const texts = textsOf(given, judges)
      for (const template of table.argv.slice(1)) checkDash(template, texts, parameters)
      const program = programOf(table, found, texts)
      return async (signal) => resultOf(await runProgram(program, clock, signal), table)
    },
  }
}

function programOf(table: ExecTable, { path, user }: Found, texts: ReadonlyMap<string, string>): Program {
  const textFor = (name: string): string | undefined => texts.get(name)
  const environment: Record<string, string> = { PATH: FIXED_PATH, LANG: 'C.UTF-8' }
  for (const { name, value } of table.environment) {
    const text = fill(value, textFor)
    if (text !== undefined) environment[name] = text
  }
  return {
    path,
    // An argument of which a parameter was left out is left out.
    argv: table.argv.slice(1).flatMap((template) => fill(template, textFor) ?? []),
    environment,
    directory: table.directory,
    user,
    stdin: table.stdin && fill(table.stdin, textFor),
    timeoutMs: table.timeoutMs,
    maxOutput: table.maxOutput,
  }
}

function resultOf(ended: Ended, { timeoutMs }: ExecTable): ControlResult {
  const { end, cause } = ended
  const value = valueFrom(ended)
  if (cause === 'timeout') return { outcome: 'timeout', detail: `ended after ${timeoutMs} ms`, value }
  if (cause === 'stop') return { outcome: 'failed', detail: 'ended: the producer stopped', value }
  if ('error' in end) return { outcome: 'failed', detail: `it could not be started: ${end.error}`, value }
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
