/** `tenant.*`: the tenants and their quotas. */
import type { Account } from '../../../auth/mechanism.ts'
import { prepareName } from '../../../auth/prepare.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Quota, Quotas } from '../accounts/quotas.ts'
import type { Tenants } from '../accounts/tenants.ts'
import { isOwnUser, type Users } from '../accounts/users.ts'
import type { Hub } from '../metrics/hub.ts'
import { asInvalidArgument, records, seesTenant, stringArgument, tenantParameter, textField } from './administration.ts'
import { type Control, type ControlArguments, type ControlParameter, failed, ok } from './control.ts'

export interface TenantControlsOptions {
  readonly tenants: Tenants
  readonly accounts: Pick<Users, 'list' | 'remove'>
  readonly quotas: Pick<Quotas, 'of' | 'changed'>
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
  /** What others have brought in for a tenant ends with it. */
  readonly hub: Pick<Hub, 'endSeries'>
  /** Ends everything of a removed user. */
  readonly endUser: (account: Account) => Promise<unknown>
}

const { REC, UINT32, UINT64 } = BasicType

/** The limits of a quota, by their names on the wire. */
const limits: Readonly<Record<string, { readonly key: keyof Quota; readonly description: string }>> = {
  connections: { key: 'connections', description: 'Authenticated connections.' },
  channels: { key: 'channels', description: 'Channels that are kept.' },
  queued_bytes: { key: 'queuedBytes', description: 'Bytes of values that wait in all channels together.' },
  instances: { key: 'instances', description: 'Metrics that are bound; each match of a pattern counts.' },
  values_per_second: { key: 'valuesPerSecond', description: 'Values that its feeds may deliver.' },
  controls_per_minute: { key: 'controlsPerMinute', description: 'EXECUTEs.' },
  audit_bytes_per_day: { key: 'auditBytesPerDay', description: 'Bytes of records in the audit log.' },
  dials_per_minute: { key: 'dialsPerMinute', description: 'Attempts to connect to consumers.' },
  series: { key: 'series', description: 'Live series of families with open labels.' },
  history_bytes: { key: 'historyBytes', description: 'Bytes of its history.' },
  history_series: { key: 'historySeries', description: 'Series of its history.' },
  rules: { key: 'rules', description: 'Rules that its users put.' },
  notifiers: { key: 'notifiers', description: 'Notifiers that its users put.' },
  rule_seconds_per_hour: { key: 'ruleSecondsPerHour', description: 'Seconds of work for rules of its users.' },
}

const parameters: readonly ControlParameter[] = [
  { ...tenantParameter, optional: false, description: 'Its name.' },
  ...Object.entries(limits).map(([name, { description }]) => {
    return {
      name,
      type: UINT64,
      optional: true,
      max: Number.MAX_SAFE_INTEGER,
      description: `${description} 0: no limit.`,
    }
  }),
]

export function tenantControls({ tenants, accounts, quotas, hub, endUser, stored }: TenantControlsOptions): Control[] {
  const accountsOf = (tenant: string): Account[] => accounts.list().filter((account) => account.tenant === tenant)
  const usersOf = (tenant: string): number => accountsOf(tenant).filter((account) => !isOwnUser(account)).length

  const add: Control = {
    name: 'tenant.add',
    adminOnly: true,
    description: 'Adds a tenant. An omitted limit is the one of the configuration.',
    parameters,
    prepare(args) {
      const name = tenantOf(args)
      const quota = quotaOf(args)
      return async () => {
        if (tenants.has(name)) return failed(`the tenant ${name} exists already`)
        tenants.set(name, quota)
        quotas.changed(name)
        await stored()
        return ok(`tenant ${name} added`)
      }
    },
  }

  const set: Control = {
    name: 'tenant.set',
    adminOnly: true,
    description: 'Changes the limits of a tenant. What it already has stays.',
    usesReserve: true,
    parameters,
    prepare(args) {
      const name = tenantOf(args)
      const quota = quotaOf(args)
      return async () => {
        if (!tenants.has(name)) return failed(`there is no tenant ${name}`)
        tenants.set(name, quota)
        quotas.changed(name)
        await stored()
        return ok(`limits of ${name} set`)
      }
    },
  }

  const remove: Control = {
    name: 'tenant.remove',
    adminOnly: true,
    description: 'Removes a tenant that has no users.',
    parameters: parameters.slice(0, 1),
    prepare(args) {
      const name = tenantOf(args)
      return async () => {
        if (!tenants.has(name)) return failed(`there is no tenant ${name}`)
        const users = usersOf(name)
        if (users > 0) return failed(`${name} has ${users} ${users === 1 ? 'user' : 'users'}: remove them first`)
        tenants.remove(name)
        quotas.changed(name)
        for (const account of accountsOf(name)) {
          accounts.remove(account)
          await endUser(account)
        }
        await hub.endSeries(name)
        await stored()
        return ok(`tenant ${name} removed`)
      }
    },
  }

  const list: Control = {
    name: 'tenant.list',
    description: 'Lists the tenants with their limits and what they use: an admin sees all, others their own.',
    parameters: [],
    isRecorded: () => false,
    prepare(_, { identity }) {
      return () => {
        const items = tenants
          .list()
          .filter((name) => seesTenant(identity, name))
          .map((name): Field[] => [
            textField('tenant', name),
            { name: 'users', type: UINT32, value: usersOf(name) },
            { name: 'quota', type: REC, value: fieldsOf(tenants.quotaOf(name)) },
            { name: 'used', type: REC, value: fieldsOf(usedBy(quotas, name)) },
          ])
        return ok('', records(items))
      }
    },
  }

  return [add, set, remove, list]
}

function tenantOf(args: ControlArguments): string {
  return asInvalidArgument(() => prepareName('tenant', stringArgument(args, 'tenant') ?? ''))
}

function quotaOf(args: ControlArguments): Partial<Quota> {
  const quota: { -readonly [K in keyof Quota]?: number } = {}
  for (const [name, { key }] of Object.entries(limits)) {
    const limit = args.get(name) as bigint | undefined
    if (limit !== undefined) quota[key] = Number(limit)
  }
  return quota
}

function usedBy(quotas: Pick<Quotas, 'of'>, tenant: string): Quota {
  const use = quotas.of(tenant)
  const {
    connections,
    channels,
    instances,
    controls,
    audited,
    dials,
    queued,
    values,
    series,
    history,
    rules,
    notifiers,
    ruleSeconds,
  } = use
  return {
    connections: connections.used,
    channels: channels.used,
    queuedBytes: queued.bytes,
    instances: instances.used,
    valuesPerSecond: values.used,
    controlsPerMinute: controls.used,
    auditBytesPerDay: audited.used,
    dialsPerMinute: dials.used,
    series: series.used,
    historyBytes: history.bytes,
    historySeries: history.series,
    rules: rules.used,
    notifiers: notifiers.used,
    ruleSecondsPerHour: ruleSeconds.used,
  }
}

function fieldsOf(quota: Quota): Field[] {
  return Object.entries(limits).map(([name, { key }]) => {
    return { name, type: UINT64, value: BigInt(Math.max(0, Math.round(quota[key]))) }
  })
}
