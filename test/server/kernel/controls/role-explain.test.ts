/** `role.explain` about PUBLISH, with a family that takes published values. */
import { expect, test } from 'vitest'
import type { Rule } from '../../../../auth/permissions.ts'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { Rights } from '../../../../server/kernel/accounts/rights.ts'
import type { Rules } from '../../../../server/kernel/accounts/rules.ts'
import type { Users } from '../../../../server/kernel/accounts/users.ts'
import type { ControlContext } from '../../../../server/kernel/controls/control.ts'
import { roleExplain } from '../../../../server/kernel/controls/roles.ts'

const rules: readonly Rule[] = [
  { number: 1, role: 'operator', effect: 'allow', command: '*', object: '*', where: {} },
  { number: 2, role: 'operator', effect: 'allow', command: 'PUBLISH', object: 'otlp.*', where: { service: 'web*' } },
]
const identities = {
  ada: { userId: 1, tenant: 'default', name: 'ada', role: 'operator' },
  root: { userId: 2, tenant: 'default', name: 'root', role: 'admin' },
}
const explain = roleExplain({
  accounts: {
    find: (_: string, name: keyof typeof identities) => identities[name],
    identity: (account: unknown) => account,
  } as unknown as Users,
  rights: new Rights({ of: () => rules } as unknown as Rules),
  hub: { sensors: [] },
  dialler: { destination: (url) => ({ url }), permits: () => false },
  isPublished: (object) => object.startsWith('otlp.'),
  executor: { audienceOf: () => ({}) },
})

async function asked(user: string, object: string, where = ''): Promise<unknown> {
  const args = new Map(Object.entries({ user, command: 'PUBLISH', object, where }))
  const run = explain.prepare(args, { identity: identities.root } as unknown as ControlContext)
  const { value } = await run(new AbortController().signal)
  return valueToJson(value)
}

test.each([
  ['ada', 'otlp.requests', 'service=web1', true, 'rule 2: allow PUBLISH otlp.* where service=web*'],
  [
    'ada',
    'otlp.requests',
    'service=db',
    false,
    'default: no values may be published without a rule that names PUBLISH',
  ],
  ['ada', 'otlp.requests', '', false, 'default: no values may be published without a rule that names PUBLISH'],
  ['root', 'otlp.requests', '', true, 'the role admin may do everything'],
  ['root', 'gmetric.a', '', false, 'no metric of that name takes published values, whatever the rules say'],
])('%s, PUBLISH %s %s: %s, by %s', async (user, object, where, allowed, because) => {
  expect(await asked(user, object, where)).toEqual({ allowed, because })
})
