/**
 * S-16: no value of a parameter runs anything, becomes a second argument or an option. Each value is either refused, or
 * stands, byte by byte, inside the one argument that the table gave it.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { valueToJson } from '../../../../../protocol/monitor/json-value.ts'
import type { Control, ControlContext } from '../../../../../server/kernel/controls/control.ts'
import { execControls } from '../../../../../server/kernel/controls/exec/exec-controls.ts'
import { systemClock } from '../../../../../server/kernel/core/clock.ts'
import { StatusError } from '../../../../../server/kernel/core/errors.ts'
import { execTables } from '../../../../support/exec-tables.ts'
import type { Json } from '../../../../support/records.ts'
import { corpus } from './corpus.ts'

const signal = new AbortController().signal
const context = {} as ControlContext

/** The arguments that the program got; undefined if the value was refused. */
async function argumentsOf(control: Control, v: string): Promise<string[] | undefined> {
  try {
    const result = await control.prepare(new Map([['v', v]]), context)(signal)
    expect(result.outcome).toBe('ok')
    const { stdout }: Json = valueToJson(result.value)
    return stdout.split('|end|').slice(0, -1)
  } catch (error) {
    if (error instanceof StatusError && error.status === 'INVALID_ARGUMENT') return undefined
    throw error
  }
}

describe('a value of a parameter', () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-exec-'))
  let controls: [Control, Control, Control]
  beforeAll(() => {
    const table = (name: string, more = '') =>
      `[[exec]]\nname = "exec.${name}"\nargv = ["printf", "%s|end|", "{v}", "x={v}", "--", "{v}{v}"]\n` +
      `directory = ${JSON.stringify(directory)}\n[[exec.parameter]]\nname = "v"\n${more}\n`
    const tables = [table('any'), table('dash', 'allow_dash = true'), table('word', 'pattern = "[a-z]+|[0-9]{1,3}"')]
    controls = execControls(execTables(tables.join('')), systemClock()) as [Control, Control, Control]
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  // Four at once: each is a process.
  async function each(control: Control, judge: (v: string, got: string[] | undefined) => void): Promise<void> {
    const left = [...corpus]
    const work = async (): Promise<void> => {
      for (let v = left.pop(); v !== undefined; v = left.pop()) judge(v, await argumentsOf(control, v))
    }
    await Promise.all([work(), work(), work(), work()])
    expect(readdirSync(directory)).toEqual([])
  }

  it('arrives as it was given, in its one argument, or not at all', async () => {
    let ran = 0
    await each(controls[0], (v, got) => {
      const isRefused = v === '' || v.startsWith('-') || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(v) || Buffer.byteLength(v) > 256
      if (got !== undefined) ran++
      expect([v, got]).toEqual([v, isRefused ? undefined : [v, `x=${v}`, '--', `${v}${v}`]])
    })
    expect(ran).toBeGreaterThan(90)
  })

  it('may begin with a dash only where the table says so', async () => {
    const dashed = corpus.filter((v) => v.startsWith('-') && !v.includes('\n'))
    expect(dashed.length).toBeGreaterThan(4)
    for (const v of dashed) expect(await argumentsOf(controls[1], v)).toEqual([v, `x=${v}`, '--', `${v}${v}`])
  })

  it('that does not match the pattern as a whole runs nothing', async () => {
    const passed: string[] = []
    await each(controls[2], (v, got) => {
      if (got !== undefined) passed.push(v)
    })
    expect(passed).toEqual(['a'.repeat(256)])
  })
})
