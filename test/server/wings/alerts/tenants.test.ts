/** Rule files whose author or tenant is removed while they are read: nothing of them stays, and no other tenant of the name finds them. */
import { expect, it } from 'vitest'
import { RulesOfTenants, type RulesOfTenantsServices } from '../../../../server/wings/alerts/tenants.ts'
import type { Change, RuleFileRow } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const row: RuleFileRow = {
  ...{ tenant: 'ops', name: 'a.yml', user: 7, author: 'olga', token: 0, scope: '', put: 0 },
  rules: 'groups: [{ name: g, rules: [{ record: a, expr: vector(1) }] }]',
}

/** What was stored, and the rules; `users` are those that there are. */
function opened(files: readonly RuleFileRow[], users: ReadonlySet<number>) {
  const changes: Change[] = []
  const journal = { change: (change: Change) => void changes.push(change), whenStored: async () => {} }
  const reader = { userId: 7, tenant: 'ops', name: 'olga', role: 'author' }
  const quota = { rules: { limit: 100, used: 0, refused: 0 } }
  const kit = {
    clock: new FakeClock(),
    expressions: { stored: { files, alerts: [], groups: [], journal } },
    peer: { view: { readerOf: (user: number) => (users.has(user) ? reader : undefined), use: () => quota } },
    poll: { work: () => undefined },
  }
  const services = { kit, intervalMs: () => 60_000, outcomes: () => ({}) }
  return { changes, rules: new RulesOfTenants(services as unknown as RulesOfTenantsServices, []) }
}

it('is not put once its author is removed', async () => {
  const users = new Set([7])
  const { changes, rules } = opened([], users)
  const putting = rules.put(row)
  users.clear()
  expect(await putting).toEqual({ refused: 'whoever puts it is no user any more, or the token is revoked' })
  expect(rules.filesOf('ops')).toEqual([])
  expect(changes).toEqual([])
})

it('of a tenant that is removed before they are read after a start, is removed from the store', async () => {
  const { changes, rules } = opened([row], new Set([7]))
  rules.configure([])
  rules.endTenant('ops')
  await rules.whenRead()
  expect(rules.filesOf('ops')).toEqual([])
  expect(changes).toEqual([{ remove: 'rule file', tenant: 'ops', name: 'a.yml' }])
})
