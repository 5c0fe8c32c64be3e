/**
 * The tables `[[exec]]`: programs that may be run as controls, and with what. Whether the program and the user are there is
 * judged at the start (found.ts); everything that can be judged by reading is judged here.
 */
import { RE2JSException } from 're2js'
import { z } from 'zod'
import { type SectionConfig, tableList } from '../../config/schema.ts'
import { duration, integer, key, needed, oneOf, optional, plainText, tenant, toggle } from '../../config/value-types.ts'
import { WholePattern } from '../bounds.ts'
import { reservedParameters } from '../control.ts'
import { parseTemplate, type Template, templateParameters } from './template.ts'

/** A value of a parameter is never longer, whatever the table says: it is matched against a pattern. */
export const MAX_VALUE_BYTES = 4096
/** With every byte of it no UTF-8, it still fits a frame. */
const MAX_OUTPUT_BYTES = 262_144

const textOrOff = () => ({ type: z.string().regex(/^[^\0]*$/), expected: 'a text' })
const names = () => ({ type: z.array(tenant().type).min(1), expected: 'a list of tenants, not empty' })
const words = () => ({
  type: z.array(z.string().regex(/^[^\p{Cc}]+$/u)),
  expected: 'a list of texts, none of them empty',
})
const bound = () => ({ type: z.union([z.bigint(), z.number()]), expected: 'a number' })
const program = () => ({
  type: z
    .array(z.string().regex(/^[^\0]*$/))
    .min(1)
    .transform((list) => list.map(parseTemplate)),
  expected: 'a list of texts: the program, then its arguments',
})
const environment = () => ({
  type: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
    .transform((table) => Object.entries(table).map(([name, value]) => ({ name, value: parseTemplate(value) }))),
  expected: 'a table of variables with a text each, like { LC_ALL = "C" }',
})
const fallback = () => ({
  type: z.union([z.string(), z.bigint(), z.number(), z.boolean()]),
  expected: 'a value of its type',
})
const parameterName = () => ({
  type: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,62}$/)
    .refine((name) => !reservedParameters.includes(name)),
  expected: `a name of small letters, digits and "_", but none of ${reservedParameters.join(', ')}`,
})
const controlName = () => ({
  type: z.string().regex(/^exec\.[a-z0-9][a-z0-9._-]{0,200}$/),
  expected: 'a name that begins with "exec.", of small letters, digits, ".", "_" and "-"',
})

const parameterTable = z
  .strictObject({
    name: needed(parameterName(), 'Its name: `{name}` stands for its value.'),
    type: key(
      oneOf('string', 'integer', 'number', 'boolean'),
      'string',
      'What it takes. A number is written as JavaScript writes it, a boolean as `true` or `false`.',
    ),
    description: key(plainText(), '', 'For the catalogue.'),
    optional: key(toggle(), false, 'Left out and without a default, every argument that holds it is left out too.'),
    default: optional(fallback(), 'Its value where it is left out.'),
    pattern: key(
      textOrOff(),
      '',
      'A regular expression that the whole text has to match, in the syntax of RE2: without look-around and back-references. ' +
        'For `string`.',
    ),
    values: key(words(), [], 'The only texts that it takes; empty: any. For `string`.'),
    max_length: key(integer(1, MAX_VALUE_BYTES), 256n, 'Bytes of its text at most. For `string`.'),
    min: optional(bound(), 'The least it may be. For `integer` and `number`.'),
    max: optional(bound(), 'The most it may be.'),
    allow_dash: key(
      toggle(),
      false,
      'Whether its value may begin with `-` where it stands at the start of an argument: there it could be an option.',
    ),
    secret: key(
      toggle(),
      false,
      'Never shown, in no log and no audit record; only for `stdin` and `environment`, since arguments show in the process list.',
    ),
  })
  .superRefine((parameter, context) => {
    for (const message of parameterProblems(parameter)) context.addIssue({ code: 'custom', message })
  })

const execTable = z
  .strictObject({
    name: needed(controlName(), 'The name of the control.'),
    description: key(plainText(), '', 'For the catalogue.'),
    argv: needed(
      program(),
      'The program and its arguments; there is no shell. The program is a path from `/` on, or is looked for in ' +
        'the fixed PATH when the server starts. `{name}` stands for a parameter, `{{` and `}}` for braces.',
    ),
    dry_run_argv: optional(
      program(),
      'What a dry run runs instead, and whoever has to approve it is shown: as `argv`, a program that changes nothing. At most ' +
        '16,384 bytes of its output are kept. Without it a dry run only checks.',
    ),
    parameter: z
      .array(parameterTable)
      .max(64)
      .default([])
      .refine((list) => areDifferent(list.map(({ name }) => name)), 'a parameter stands twice')
      .describe('The parameters of the `[[exec]]` above it.'),
    environment: key(
      environment(),
      {},
      'Its environment, beside `PATH` and `LANG`, which may be named too. `{name}` only for a secret parameter.',
      '`{}`',
    ),
    stdin: key(textOrOff(), '', 'What it reads: `{name}` of a secret parameter; empty: nothing.'),
    directory: key(
      { type: z.string().regex(/^\/[^\0]*$/), expected: 'a path from "/" on' },
      '/',
      'Where it is started.',
    ),
    user: key(
      plainText(),
      '',
      "The user it runs as; empty: the server's own. Another one only where the server is root.",
    ),
    timeout: key(duration('10ms', '1h'), '30s', 'After that its process group is ended: SIGTERM, 2 s later SIGKILL.'),
    max_output: key(
      integer(0, MAX_OUTPUT_BYTES),
      65_536n,
      'Bytes of its standard output and error, together, that are kept; the rest is thrown away and `truncated` says so.',
    ),
    max_running: key(integer(1, 64), 1n, 'How many of it may run at once for each tenant; one more is answered BUSY.'),
    tenants: key(names(), ['default'], 'The tenants whose users may ever run it, whatever rules say.'),
    anywhere: key(
      toggle(),
      false,
      'In a cluster: whether it may run on whichever node leads. Without this it is refused there.',
    ),
  })
  .superRefine((table, context) => {
    for (const message of tableProblems(table)) context.addIssue({ code: 'custom', message })
  })
  .transform(({ stdin, parameter, max_output, max_running, timeout, argv, dry_run_argv, ...rest }) => ({
    ...rest,
    argv: argv as readonly Template[] as ProgramTemplate,
    dryRunArgv: dry_run_argv as readonly Template[] | undefined as ProgramTemplate | undefined,
    stdin: stdin === '' ? undefined : parseTemplate(stdin),
    parameters: parameter.map(({ max_length, allow_dash, ...one }) => ({
      ...one,
      maxLength: max_length,
      allowDash: allow_dash,
    })),
    timeoutMs: timeout,
    maxOutput: max_output,
    maxRunning: max_running,
  }))

export const execSection = tableList(
  z
    .array(execTable)
    .max(1000)
    .refine((list) => areDifferent(list.map(({ name }) => name)), 'two of them have the same `name`')
    .default([])
    .describe(
      'Programs that may be run as controls, one table each; only in the file. How to write one: ' +
        '[controls.md](controls.md#exec).',
    ),
  { isLive: true },
)
/** The program, then its arguments. */
export type ProgramTemplate = readonly [Template, ...Template[]]
/** A program that may be run as a control. */
export type ExecTable = SectionConfig<typeof execSection>[number]
export type ExecParameter = ExecTable['parameters'][number]

function areDifferent(names: readonly string[]): boolean {
  return new Set(names).size === names.length
}

/** The contradictions in a parameter, in words. */
function* parameterProblems(parameter: z.output<typeof parameterTable>): Generator<string> {
  const { type, pattern, values, min, max, secret, default: byDefault } = parameter
  if (type !== 'string' && (pattern !== '' || values.length > 0)) yield '`pattern` and `values` are for type = "string"'
  if (type !== 'string' && secret) yield '`secret` is for type = "string"'
  const isNumber = type === 'integer' || type === 'number'
  if (!isNumber && (min !== undefined || max !== undefined)) yield '`min` and `max` are for integers and numbers'
  if (type === 'integer' && [min, max].some((limit) => typeof limit === 'number')) {
    yield '`min` and `max` of an integer are integers'
  }
  if (min !== undefined && max !== undefined && min > max) yield `\`min\` (${min}) is above \`max\` (${max})`
  const problem = patternProblem(pattern)
  if (problem !== undefined) yield `\`pattern\` is no regular expression of RE2: ${problem}`
  if (byDefault !== undefined && secret) yield 'a secret has no `default`: it would stand in this file'
  if (byDefault !== undefined && !isOf(type, byDefault)) yield `\`default\` is no ${type}`
}

function isOf(type: z.output<typeof parameterTable>['type'], value: string | bigint | number | boolean): boolean {
  if (type === 'integer') return typeof value === 'bigint'
  if (type === 'number') return typeof value === 'number' || typeof value === 'bigint'
  return typeof value === type
}

/** Why a pattern cannot be used; undefined if it can. */
function patternProblem(pattern: string): string | undefined {
  try {
    new WholePattern(pattern)
    return undefined
  } catch (error) {
    if (error instanceof RE2JSException) return error.message
    throw error
  }
}

interface Parts {
  readonly argv: readonly Template[]
  readonly dry_run_argv?: readonly Template[] | undefined
  readonly stdin: string
  readonly environment: readonly { readonly name: string; readonly value: Template }[]
  readonly parameter: readonly { readonly name: string; readonly secret: boolean }[]
}

/** The contradictions in a table, in words. */
function* tableProblems({ argv, dry_run_argv = [], stdin, environment, parameter }: Parts): Generator<string> {
  const declared = new Map(parameter.map((one) => [one.name, one]))
  for (const [name, [path]] of [
    ['argv', argv],
    ['dry_run_argv', dry_run_argv],
  ] as const) {
    if (path !== undefined && templateParameters(path).length > 0)
      yield `\`${name}\`: the program itself cannot hold a parameter`
  }
  const rest = [...argv.slice(1), ...dry_run_argv.slice(1)]
  const hidden = [parseTemplate(stdin), ...environment.map(({ value }) => value)].flatMap(templateParameters)
  for (const name of [...[...argv, ...dry_run_argv].flatMap(templateParameters), ...hidden]) {
    if (!declared.has(name)) yield `{${name}} is not one of its parameters: write {{${name}}} for the braces themselves`
  }
  for (const name of rest.flatMap(templateParameters)) {
    if (declared.get(name)?.secret)
      yield `the secret {${name}} would show in the process list: give it to \`stdin\` or \`environment\``
  }
  for (const name of hidden) {
    if (declared.get(name)?.secret === false)
      yield `{${name}} is no secret: \`stdin\` and \`environment\` take secrets only`
  }
  const used = new Set([...argv.flatMap(templateParameters), ...hidden])
  for (const name of declared.keys()) if (!used.has(name)) yield `the parameter ${name} is used nowhere`
}
