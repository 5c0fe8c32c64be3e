import { expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import type { Link } from '../../../../protocol/link/link.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { writeNotice, writeValueMessage } from '../../../../protocol/monitor/message.ts'
import { FairWork } from '../../../../server/kernel/core/fair-work.ts'
import { JsonLink } from '../../../../server/kernel/sessions/json-link.ts'

const ITEMS = 1_000

/** Looks at the clock make it later, so that little is done at once; turns of the event loop come when the test says so. */
function slow() {
  const turns: (() => void)[] = []
  let nowMs = 0
  const work = new FairWork({ monotonicMs: () => nowMs++ }, (turn) => turns.push(turn))
  const out: string[] = []
  const text: Pick<Link, 'writeText' | 'end'> = {
    writeText(json, written) {
      out.push(json)
      written?.()
    },
    end: (code) => void out.push(`end ${code}`),
  }
  const link = new JsonLink(text as Link, {
    work,
    party: { tenant: 'acme' },
    failed: (error) => out.push(`failed ${error}`),
  })
  return { link, out, turns }
}

function list(): Uint8Array {
  const items = Array.from({ length: ITEMS }, (_, index) => index)
  const writer = new XdrWriter()
  const value = { type: BasicType.ARRAY, value: { element: BasicType.UINT32, items } } as const
  writeValueMessage(writer, { metric: 7, transaction: 0, time: 1, value })
  return writer.copy()
}

function notice(code: number): Uint8Array {
  const writer = new XdrWriter()
  writeNotice(writer, code, 9, 'x')
  return writer.copy()
}

it('a list becomes text over many turns; what follows waits for it, and the end for all', () => {
  const { link, out, turns } = slow()
  link.write(list(), () => out.push('written'))
  link.write(notice(1))
  link.end(1000)
  expect(out).toEqual([])
  let taken = 0
  for (let next = turns.shift(); next !== undefined; next = turns.shift()) {
    next()
    if (out.length === 0) taken++
  }
  expect(taken).toBeGreaterThan(ITEMS / 10)
  expect(JSON.parse(out[0] as string).value).toHaveLength(ITEMS)
  expect(out.slice(1)).toEqual([
    'written',
    '{"type":"notice","code":"WINDOW_FULL","channel":9,"detail":"x"}',
    'end 1000',
  ])
  link.write(notice(2))
  for (let next = turns.shift(); next !== undefined; next = turns.shift()) next()
  expect(JSON.parse(out[4] as string).code).toBe('SUPERSEDED')
})

it('a frame that cannot be converted is reported, and what waits counts as written', () => {
  const { link, out, turns } = slow()
  link.write(list())
  link.write(Uint8Array.of(0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0), () => out.push('first'))
  link.write(notice(1), () => out.push('second'))
  link.end(1000)
  for (let next = turns.shift(); next !== undefined; next = turns.shift()) next()
  expect(out.slice(1)).toEqual([expect.stringContaining('no message has the number 0'), 'first', 'second', 'end 1000'])
})
