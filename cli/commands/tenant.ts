/** `cinnabar tenant`: tenants share the server without seeing each other, each with its own quotas. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Arguments } from '../../client/index.ts'
import { confirm, YES_OPTION, type YesOption } from '../confirm.ts'
import { callControl, printControlList } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatBytes, formatCount } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { type Column, formatTable, JSON_OPTION, type JsonOptions } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField } from '../records.ts'
import { type Cli, withLoginOptions } from '../session.ts'
import type { Colors } from '../terminal.ts'

/** For each parameter of the controls, its option and the heading of its column. */
const QUOTAS = {
  connections: { flag: 'connections', what: 'logged-in connections', head: 'connections' },
  channels: { flag: 'channels', what: 'channels', head: 'channels' },
  queued_bytes: { flag: 'queued-bytes', what: 'bytes waiting in all channels together', head: 'queued' },
  instances: { flag: 'instances', what: 'bound metrics; each match of a pattern counts', head: 'instances' },
  values_per_second: { flag: 'values-per-second', what: 'values per second from its feeds', head: 'values/s' },
  controls_per_minute: { flag: 'controls-per-minute', what: 'controls per minute', head: 'controls/min' },
  audit_bytes_per_day: { flag: 'audit-bytes-per-day', what: 'bytes of audit records per day', head: 'audit/day' },
  dials_per_minute: { flag: 'dials-per-minute', what: 'attempts per minute to dial consumers', head: 'dials/min' },
  series: { flag: 'series', what: 'live series of families with open labels', head: 'series' },
  history_bytes: { flag: 'history-bytes', what: 'bytes of its history', head: 'history' },
  history_series: { flag: 'history-series', what: 'series of its history', head: 'history series' },
  rules: { flag: 'rules', what: 'rules that its users put into force', head: 'rules' },
  notifiers: { flag: 'notifiers', what: 'notifiers that its users put into force', head: 'notifiers' },
  rule_seconds_per_hour: {
    flag: 'rule-seconds-per-hour',
    what: 'seconds of work per hour for rules of its users',
    head: 'rule s/h',
  },
} as const

type QuotaOptions = Readonly<{ [option: string]: bigint }>

export function addTenant(program: Command, cli: Cli): void {
  const { terminal } = cli
  const tenant = program
    .command('tenant')
    .description('manage tenants, which share the server without seeing each other, and their quotas')

  withQuotas(withLoginOptions(tenant.command('add')))
    .description('add a tenant; quotas that are not given are those of [quota] in the configuration')
    .argument('<tenant>', 'name of the tenant')
    .action((name: string, options: LoginOptions) => {
      const args = { tenant: name, ...quotasOf(options) }
      return callControl(cli, options, 'tenant.add', args)
    })

  withQuotas(withLoginOptions(tenant.command('set')))
    .description('change quotas of a tenant; those that are not given stay')
    .argument('<tenant>', 'name of the tenant')
    .action((name: string, options: LoginOptions) => {
      const quotas = quotasOf(options)
      if (Object.keys(quotas).length === 0) throw new Failure(ExitCode.USAGE, 'no quota is given: see --help')
      return callControl(cli, options, 'tenant.set', { tenant: name, ...quotas })
    })

  withLoginOptions(tenant.command('remove'))
    .description('remove a tenant that has no users')
    .argument('<tenant>', 'name of the tenant')
    .option(...YES_OPTION)
    .action(async (name: string, options: LoginOptions & YesOption) => {
      await confirm(terminal, options, [`tenant ${name} with its quotas`], 'Remove this tenant?')
      await callControl(cli, options, 'tenant.remove', { tenant: name })
    })

  withLoginOptions(tenant.command('list'))
    .description('list the tenants and how much of their quotas they use')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) => {
      const toText = (records: readonly AnswerRecord[], width?: number) => table(records, terminal.colors, width)
      return printControlList(cli, options, 'tenant.list', { none: 'there are no tenants', toText })
    })
}

function withQuotas(command: Command): Command {
  for (const { flag, what } of Object.values(QUOTAS))
    command.option(`--${flag} <n>`, `${what}; 0 means no limit`, quota)
  return command
}

/** The quotas in the form that the controls take. */
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
  throw new InvalidArgumentError('Expected a whole number; 0 means no limit.')
}

/** Shows each quota as `12/1024`, or `12` if there is no limit. */
function table(tenants: readonly AnswerRecord[], colors: Colors, width?: number): string {
  const columns: Column[] = [
    { head: 'tenant' },
    { head: 'users', align: 'right' },
    ...Object.values(QUOTAS).map(({ head }): Column => ({ head, align: 'right' })),
  ]
  const rows = tenants.map((tenant) => {
    const used = fieldsOf(findField(tenant, 'used'))
    const quota = fieldsOf(findField(tenant, 'quota'))
    const cells = Object.keys(QUOTAS).map((name) => {
      const text = name.includes('bytes') ? formatBytes : formatCount
      const limit = fieldNumber(quota, name)
      const isOver = limit > 0 && fieldNumber(used, name) >= limit
      const cell = text(fieldNumber(used, name)) + (limit === 0 ? '' : `/${text(limit)}`)
      return isOver ? colors.red(cell) : cell
    })
    return [fieldText(tenant, 'tenant'), fieldText(tenant, 'users'), ...cells]
  })
  return formatTable(columns, rows, colors, width)
}
