/** What plug-ins are handed; and those of a server that cannot start, which are told to close what they have opened. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defaultConfig } from '../../../../server/start/config.ts'
import { TestProducer } from '../../../support/producer.ts'

const CLOSED = 'a test has counted the plug-ins that were closed'
const counts = globalThis as { [CLOSED]?: string[] }

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  counts[CLOSED] = []
})
afterEach(() => {
  delete counts[CLOSED]
  rmSync(directory, { recursive: true, force: true })
})

const limits = { tenant: 'default', options: {}, timeoutMs: 10_000, valuesPerSecond: 1, maxSeries: 1, anywhere: false }

test('sensors and controls are added by the words of the kit, and by their older names', async () => {
  const module = join(directory, 'words.mjs')
  writeFileSync(
    module,
    `const sensor = (family) => ({ polled: 'event', family, metrics: () => [], metric() {}, subscribe: () => () => {} })
     const control = (name) => ({ name, description: '', parameters: [], prepare: () => () => ({ outcome: 'ok' }) })
     export function plugin({ feed, controls, hub, addControl }) {
       feed.add(sensor('new.'))
       hub.add(sensor('old.'))
       controls.add(control('plugin.one'), control('plugin.two'))
       addControl(control('plugin.three'))
     }`,
  )
  const producer = await TestProducer.start({ config: { ...defaultConfig(), plugin: [{ module, ...limits }] } })
  try {
    const { hub, producer: parts } = producer.server.parts
    expect(hub.sensors.map(({ family }) => family)).toEqual(expect.arrayContaining(['new.', 'old.']))
    const admin = { userId: 1, tenant: 'default', name: 'admin', role: 'admin' }
    const names = [...parts.executor.visible(admin)].map((control) => control?.name)
    expect(names).toEqual(expect.arrayContaining(['plugin.one', 'plugin.two', 'plugin.three']))
  } finally {
    await producer.stop()
  }
})

test('a start that fails after plug-ins were loaded leaves none of them open', async () => {
  const tables = ['one', 'two'].map((name) => {
    const module = join(directory, `${name}.mjs`)
    const close = `() => globalThis['${CLOSED}'].push('${name}')`
    writeFileSync(module, `export const plugin = ({ signal }) => signal.addEventListener('abort', ${close})`)
    return { module, ...limits }
  })
  const starting = TestProducer.start({
    config: { ...defaultConfig(), plugin: tables },
    sensors: () => {
      expect(counts[CLOSED]).toEqual([])
      throw new Error('this start fails')
    },
  })
  await expect(starting).rejects.toThrow('this start fails')
  expect(counts[CLOSED]?.sort()).toEqual(['one', 'two'])
})
