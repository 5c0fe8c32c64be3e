/** What a plug-in may declare of its controls, so that `producer.controls` can show them. */
import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import {
  hostedControl,
  type PluginControlHost,
  type PluginParameter,
} from '../../../../server/wings/plugin/controls.ts'

const { STRING, REC, ARRAY } = BasicType
const host: PluginControlHost = {
  tenants: undefined,
  timeoutMs: 1000,
  enter: (act) => act(),
  inTime: (working) => working,
  failed: () => {},
}

function declare(...shapes: readonly Partial<PluginParameter>[]): void {
  const parameters = shapes.map((shape, n) => ({ name: `p${n}`, type: STRING, description: '', ...shape }))
  const prepare = () => () => ({ outcome: 'ok', detail: '', value: VOID }) as const
  hostedControl({ name: 'plugin.a', description: '', parameters, prepare }, host)
}

test('a `default` that would be nested too deep is refused', () => {
  declare({ default: 'a' })
  expect(() => declare({ type: REC, default: [] })).toThrow('no `default`')
  expect(() => declare({ type: ARRAY, default: { element: STRING, items: [] } })).toThrow('no `default`')
})

test('bounds that would fill the list are refused, together too', () => {
  const text = 'x'.repeat(30_000)
  declare({ pattern: text }, { values: [text] })
  expect(() => declare({ pattern: text }, { values: [text] }, { default: text })).toThrow('there may be 65536')
  expect(() => declare({ values: new Array(40_000).fill('x') })).toThrow('there may be 65536')
})

test.each(['producer', 'on_behalf_of', 'dry_run', 'idempotency_key', 'repeat_only'])(
  '%s is taken before the control gets it',
  (name) => {
    expect(() => declare({ name })).toThrow(`no parameter can be called ${name}`)
  },
)
