/** Plug-ins of a server that cannot start: they are told to close what they have opened. */
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

test('a start that fails after plug-ins were loaded leaves none of them open', async () => {
  const tables = ['one', 'two'].map((name) => {
    const module = join(directory, `${name}.mjs`)
    const close = `() => globalThis['${CLOSED}'].push('${name}')`
    writeFileSync(module, `export const plugin = ({ signal }) => signal.addEventListener('abort', ${close})`)
    return {
      module,
      tenant: 'default',
      options: {},
      timeoutMs: 10_000,
      valuesPerSecond: 1,
      maxSeries: 1,
      anywhere: false,
    }
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
