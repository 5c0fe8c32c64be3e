/** What a text takes of memory while it is made: /metrics bounds that of all texts together by what an exposition says of itself. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { compiled } from '../../support/compiled.ts'
import type { ExpositionMemory } from './exposition-memory.ts'

it('is at most what the exposition says of itself, in each form, and little more than half a KiB for a metric', () => {
  const program = compiled('test/protocol/prometheus/exposition-memory.ts')
  const { stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' })
  const found: Readonly<Record<string, ExpositionMemory>> = JSON.parse(stdout === '' ? JSON.stringify(stderr) : stdout)
  for (const [form, { most, said }] of Object.entries(found)) {
    expect(most, form).toBeLessThan(said)
    // What is far too much would refuse texts for which there is room.
    expect(said, form).toBeLessThan(2 * most)
  }
  // It was 1,050 when each metric had a text of its own.
  expect(found['a metric each']?.most).toBeLessThan(640)
})
