/** `cinnabar tenant`: who shares the server without seeing each other, and how much each may have. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Arguments, BasicType } from '../../client/index.ts'
import { listByControl, tellControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, printList } from '../output/listing.ts'
import { formatBytes, formatCount } from '../output/quantity.ts'
import { type Column, formatTable } from '../output/table.ts'
import { fieldOf, numberOf, type Record, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Colors } from '../terminal.ts'

/** By the parameter of the controls: the option, and the head of its column. */
const QUOTAS = {
  connections: { flag: 'connections', what: 'connections that are logged in', head: 'connections' },
  channels: { flag: 'channels', what: 'channels', head: 'channels' },
  queued_bytes: { flag: 'queued-bytes', what: 'bytes that wait in all channels together', head: 'queued' },
  instances: { flag: 'instances', what: 'metrics bound, each match of a pattern counted', head: 'instances' },
  values_per_second: { flag: 'values-per-second', what: 'values a second that its feeds may bring', head: 'values/s' },
  controls_per_minute: { flag: 'controls-per-minute', what: 'controls a minute', head: 'controls/min' },
  dials_per_minute: { flag: 'dials-per-minute', what: 'attempts a minute to dial consumers', head: 'dials/min' },
} as const

type QuotaOptions = Readonly<{ [option: string]: bigint }>

export function addTenant(program: Command, cli: Cli): void {
  const { terminal } = cli
  const tenant = program
    .command('tenant')
    .description('who shares the server unseen by each other, and how much each may have')

  withQuotas(withLoginOptions(tenant.command('add')))
    .description("add a tenant; what is not given is the configuration's [quota]")
    .argument('<tenant>', 'its name')
    .action((name: string, options: LoginOptions) => {
      const args = { tenant: name, ...quotasOf(options) }
      return withConsumer(cli, options, async (consumer) => {
        await tellControl(terminal, consumer, 'tenant.add', args)
      })
    })

  withQuotas(withLoginOptions(tenant.command('set')))
    .description('give a tenant other quotas; what is not given stays')
    .argument('<tenant>', 'its name')
    .action((name: string, options: LoginOptions) => {
      const quotas = quotasOf(options)
      if (Object.keys(quotas).length === 0) throw new Failure(ExitCode.USAGE, 'no quota is named: see --help')
      return withConsumer(cli, options, async (consumer) => {
        await tellControl(terminal, consumer, 'tenant.set', { tenant: name, ...quotas })
      })
    })

  withLoginOptions(tenant.command('remove'))
    .description('remove a tenant that has no users')
    .argument('<tenant>', 'its name')
    .action((name: string, options: LoginOptions) =>
      withConsumer(cli, options, async (consumer) => {
        await tellControl(terminal, consumer, 'tenant.remove', { tenant: name })
      }),
    )

  withLoginOptions(tenant.command('list'))
    .description('list the tenants, and what they use of their quotas')
    .option(...JSON_OPTION)
    .action((options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const tenants = await listByControl(terminal, consumer, 'tenant.list')
        const toText = (records: readonly Record[]) => table(records, terminal.colors)
        await printList(terminal, tenants, options.json, { none: 'there are no tenants', toText })
      }),
    )
}

function withQuotas(command: Command): Command {
  for (const { flag, what } of Object.values(QUOTAS)) command.option(`--${flag} <n>`, `${what}; 0 for no limit`, quota)
  return command
}

/** As the controls take them. */
function quotasOf(options: LoginOptions): Arguments {
  const given = options as QuotaOptions
  return Object.fromEntries(
    Object.keys(QUOTAS).flatMap((name) => {
      const value = given[name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function quota(text: string): bigint {
  if (/^\d{1,15}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('It has to be a whole number; 0 is no limit.')
}

/** As `12/1024`, or `12` where there is no limit. */
function table(tenants: readonly Record[], colors: Colors): string {
  const columns: Column[] = [
    { head: 'tenant' },
    { head: 'users', align: 'right' },
    ...Object.values(QUOTAS).map(({ head }): Column => ({ head, align: 'right' })),
  ]
  const rows = tenants.map((tenant) => {
    const used = inner(tenant, 'used')
    const quota = inner(tenant, 'quota')
    const cells = Object.keys(QUOTAS).map((name) => {
      const text = name === 'queued_bytes' ? formatBytes : formatCount
      const limit = numberOf(quota, name)
      const isOver = limit > 0 && numberOf(used, name) >= limit
      const cell = text(numberOf(used, name)) + (limit === 0 ? '' : `/${text(limit)}`)
      return isOver ? colors.red(cell) : cell
    })
    return [textOf(tenant, 'tenant'), textOf(tenant, 'users'), ...cells]
  })
  return formatTable(columns, rows, colors)
}

function inner(record: Record, name: string): Record {
  const field = fieldOf(record, name)
  return field?.type === BasicType.REC ? field.value : []
}
