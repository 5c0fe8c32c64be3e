/** Prometheus' own reader agrees: promtool takes the lines that ours takes, and refuses those that ours refuses. */
import { spawnSync } from 'node:child_process'
import { beforeEach, expect, test } from 'vitest'
import { TextReader } from '../../support/text-samples.ts'
import { NO_VALUES, VALUES, WRONG } from './text-lines.ts'

beforeEach((context) => {
  if (spawnSync('which', ['promtool']).status !== 0) context.skip('needs promtool: apt-get install prometheus')
})

const promtool = (text: string): string =>
  spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' }).stderr

test('the values that are right, in one text', () => {
  const text = VALUES.map(([value], index) => `m${index}{a="b"} ${value}\n`).join('')
  expect(promtool(text)).not.toContain('parsing error')
  expect(new TextReader().read(text).samples).toHaveLength(VALUES.length)
})

test.each([...WRONG.map(([line]) => line), ...NO_VALUES.map((value) => `m ${value}`)])('%s is wrong', (line) => {
  expect(promtool(`${line}\n`)).toContain('parsing error')
})
