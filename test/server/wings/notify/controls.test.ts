/** Controls of silences: of one's own tenant, and with matchers of a bounded length. */
import { expect, it } from 'vitest'
import { silencing, unsilencing } from '../../../../server/wings/notify/controls.ts'
import { Silences } from '../../../../server/wings/notify/silences.ts'

const NOW = 1_700_000_000_000

function controls(firingCount = (_reader: object, _matchers: readonly string[]) => 1) {
  const silences = new Silences([], { change: () => {} })
  const services = {
    silences,
    clock: { wallMs: () => NOW, setTimeout: () => ({ cancel: () => {} }), clear: () => {} },
    notifiers: { lookAgain: () => {}, find: () => undefined },
    firingCount,
    stored: () => Promise.resolve(),
  }
  const context = (tenant: string) =>
    ({ identity: { tenant, name: 'ann' }, credential: { scope: 'of the token' } }) as never
  const run = (control: ReturnType<typeof unsilencing>, given: object, tenant: string) =>
    control.prepare(new Map(Object.entries(given)) as never, context(tenant))
  return { silences, services, run }
}

it('a silence is of the tenant of whoever asks, and ended by that tenant alone', async () => {
  const { silences, services, run } = controls()
  const given = { matchers: 'severity=page\nhost=~"web.*"', seconds: 60n, comment: 'why' }
  await (await run(silencing('alert.silence', services), given, 'acme'))({} as never)
  const [silence] = silences.of('acme', NOW)
  expect(silence?.row).toMatchObject({ tenant: 'acme', author: 'ann', begins: NOW, ends: NOW + 60_000, comment: 'why' })
  expect(silences.of('other', NOW)).toEqual([])
  const id = silence?.row.id
  const end = async (tenant: string) => (await run(unsilencing(services), { id }, tenant))({} as never)
  expect(await end('other')).toMatchObject({ outcome: 'failed' })
  expect(silences.of('acme', NOW)).toHaveLength(1)
  expect(await end('acme')).toMatchObject({ outcome: 'ok' })
  expect(silences.of('acme', NOW)).toEqual([])
})

it('an acknowledgement is of what fires, as far as whoever asks may read it: where nothing does, there is none', async () => {
  const asked: object[] = []
  let firing = 0
  const { silences, services, run } = controls((...all) => {
    asked.push(all)
    return firing
  })
  const given = { matchers: 'severity=page', seconds: 60n }
  const acknowledge = async () => (await run(silencing('alert.acknowledge', services), given, 'acme'))({} as never)
  expect(await acknowledge()).toMatchObject({
    outcome: 'failed',
    detail: 'no alert fires that matches: nothing is acknowledged',
  })
  expect(silences.of('acme', NOW)).toEqual([])
  expect(asked).toEqual([[{ tenant: 'acme', name: 'ann', scope: 'of the token' }, ['severity=page']]])
  firing = 1
  expect(await acknowledge()).toMatchObject({ outcome: 'ok' })
  expect(silences.of('acme', NOW)).toMatchObject([{ row: { kind: 'acknowledgement' } }])
})

it.each([
  [0, 'no alert that fires'],
  [1, '1 alert that fires'],
  [12, '12 alerts that fire'],
])('a silence says how many alerts it is about: %s', async (firing, text) => {
  const { silences, services, run } = controls(() => firing)
  const result = await (await run(silencing('alert.silence', services), { matchers: 'a=b', seconds: 60n }, 'acme'))(
    {} as never,
  )
  const id = silences.of('acme', NOW)[0]?.row.id
  expect(result).toMatchObject({
    outcome: 'ok',
    detail: `silence ${id}: it matches ${text} now`,
    value: { value: id },
  })
})

it.each(['', 'no matcher', `a=${'b'.repeat(1_023)}`, `a=${' '.repeat(30_000)}"`, 'a=~"(a?){500}a{500}"'])(
  '%.20s is refused',
  (matchers) => {
    const { silences, services, run } = controls()
    expect(() => run(silencing('alert.silence', services), { matchers, seconds: 60n }, 'acme')).toThrow('`matchers`')
    expect(silences.of('acme', NOW)).toEqual([])
  },
)
