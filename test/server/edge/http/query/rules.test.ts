/** The parameters of `/api/v1/rules`, as Prometheus documents them. */
import { expect, it } from 'vitest'
import type { KnownRequest } from '../../../../../server/edge/http/query/metadata.ts'
import { rulesFound } from '../../../../../server/edge/http/query/rules.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
import type { ShownRule, ShownRuleGroup } from '../../../../../server/kit/rules.ts'
import type { Json } from '../../../../support/records.ts'

const ruleOf = (name: string, kind: ShownRule['kind'] = 'alert'): ShownRule => ({
  kind,
  name,
  query: 'up == 0',
  threshold: undefined,
  labels: {},
  annotations: {},
  forMs: 0,
  keepFiringForMs: 0,
  alerts: [
    { labels: { alertname: name }, annotations: {}, state: 'pending', value: 0, activeMs: 1, keptSinceMs: undefined },
  ],
  health: 'ok',
  problem: '',
  tookMs: 1,
  evaluatedMs: 1,
})
const groupOf = (file: string, name: string, ...rules: readonly ShownRule[]): ShownRuleGroup => ({
  ...{ file, name, rules },
  ...{ intervalMs: 60_000, limit: 0, tookMs: 1, evaluatedMs: 1 },
})
const GROUPS = [
  groupOf('/etc/disks.yml', 'disks', ruleOf('Full'), ruleOf('disk:free', 'record')),
  groupOf('/etc/disks.yml', 'inodes', ruleOf('Full')),
  groupOf('/etc/hosts.yml', 'hosts', ruleOf('Down')),
]

async function asked(given: string): Promise<Json> {
  const texts = await rulesFound({
    given: new URLSearchParams(given),
    rules: [
      {
        *groupsFor() {
          yield
          return GROUPS
        },
      },
    ],
    reader: {},
    tenant: 'default',
    work: { run: async (_party: unknown, steps: Generator<undefined, unknown, void>) => finish(steps) },
  } as unknown as KnownRequest)
  return (JSON.parse([...texts].join('')) as Json).data.groups
}

const ALL = ['disks Full', 'disks disk:free', 'inodes Full', 'hosts Down']

it.each([
  ['', ALL],
  ['type=alert', ['disks Full', 'inodes Full', 'hosts Down']],
  ['type=record', ['disks disk:free']],
  ['rule_name[]=Full', ['disks Full', 'inodes Full']],
  ['rule_name[]=Full&rule_name[]=Down', ['disks Full', 'inodes Full', 'hosts Down']],
  ['rule_group[]=inodes&rule_group[]=hosts', ['inodes Full', 'hosts Down']],
  ['file[]=/etc/disks.yml', ['disks Full', 'disks disk:free', 'inodes Full']],
  ['file[]=/etc/disks.yml&rule_group[]=disks&type=alert', ['disks Full']],
  // A name has to be that of the file as it is shown, and not a part of it.
  ['file[]=disks.yml', []],
  ['rule_name[]=full', []],
])('%j gives %j', async (given, expected) => {
  const groups = await asked(given)
  expect(groups.flatMap(({ name, rules }: Json) => rules.map((rule: Json) => `${name} ${rule.name}`))).toEqual(expected)
})

it('`exclude_alerts` leaves out the alerts and not the state', async () => {
  const [{ rules }] = await asked('exclude_alerts=true')
  expect(rules[0]).toMatchObject({ name: 'Full', state: 'pending' })
  expect(rules[0]).not.toHaveProperty('alerts')
  expect((await asked('exclude_alerts=false'))[0].rules[0].alerts).toHaveLength(1)
})

it('another `type` is refused', async () => {
  await expect(asked('type=both')).rejects.toThrow('invalid parameter "type": not supported value "both"')
})
