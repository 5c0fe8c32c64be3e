import { describe, expect, it } from 'vitest'
import { RecentByBytes } from '../../../protocol/bytes/recent.ts'

const viewOf = ({ buffer, byteOffset, length }: Uint8Array): DataView => new DataView(buffer, byteOffset, length)

describe('RecentByBytes', () => {
  const bytesOf = (text: string): DataView => viewOf(new TextEncoder().encode(text))
  const around = (text: string): DataView => bytesOf(`before ${text} after`)
  const [start, endOf] = [7, (text: string): number => 7 + bytesOf(text).byteLength]

  it('gives what was kept for the same bytes, wherever they stand', () => {
    const recent = new RecentByBytes<object>(8, 16)
    const made = {}
    recent.keep(around('load'), start, endOf('load'), made)
    expect(recent.get(bytesOf('load'), 0, 4)).toBe(made)
    expect(recent.get(bytesOf('loaf'), 0, 4)).toBeUndefined()
    expect(recent.get(bytesOf('load'), 0, 3)).toBeUndefined()
  })

  it('never confuses those that share a place', () => {
    const recent = new RecentByBytes<string>(4, 16)
    for (let index = 0; index < 1_000; index++) {
      const text = `m${index}`
      expect([undefined, text]).toContain(recent.get(around(text), start, endOf(text)))
      recent.keep(around(text), start, endOf(text), text)
      expect(recent.get(around(text), start, endOf(text))).toBe(text)
    }
  })

  it('finds them in any order, also when the usual one changes', () => {
    const recent = new RecentByBytes<string>(64, 16)
    const texts = ['name', 'load', 'host', 'node-1', 'node-2']
    for (const text of texts) recent.keep(bytesOf(text), 0, text.length, text)
    const kept = texts.filter((text) => recent.get(bytesOf(text), 0, text.length) !== undefined)
    expect(kept.length).toBeGreaterThan(2)
    for (let round = 0; round < 50; round++) {
      const order = round < 25 ? kept : [...kept.slice(round % kept.length), ...kept.slice(0, round % kept.length)]
      for (const text of order) expect(recent.get(bytesOf(text), 0, text.length)).toBe(text)
      expect(recent.get(bytesOf('absent'), 0, 6)).toBeUndefined()
    }
  })

  it.each(['node', 'web-00', 'host-000'])('finds a place of its own for most of %s1, 2, 3 ...', (name) => {
    const recent = new RecentByBytes<string>(128, 64)
    const texts = Array.from({ length: 10 }, (_, index) => `${name}${index}`.padEnd(12, '\0'))
    for (const text of texts) recent.keep(bytesOf(text), 0, 12, text)
    expect(texts.filter((text) => recent.get(bytesOf(text), 0, 12) === text).length).toBeGreaterThan(6)
  })

  it('keeps nearly all of a thousand in 4,096 places', () => {
    const recent = new RecentByBytes<string>(4_096, 64)
    const texts = Array.from({ length: 1_000 }, (_, index) => `gmetric.metric_${index}`)
    for (const text of texts) recent.keep(bytesOf(text), 0, text.length, text)
    const kept = texts.filter((text) => recent.get(bytesOf(text), 0, text.length) === text)
    expect(kept.length).toBeGreaterThan(950)
  })

  it('keeps nothing that is longer than its bound', () => {
    const recent = new RecentByBytes<string>(8, 4)
    recent.keep(bytesOf('longer'), 0, 6, 'longer')
    expect(recent.get(bytesOf('longer'), 0, 6)).toBeUndefined()
  })

  it('keeps its own copy of the bytes', () => {
    const recent = new RecentByBytes<string>(4, 16)
    const buffer = Buffer.from('one')
    recent.keep(viewOf(buffer), 0, 3, 'one')
    buffer.write('two')
    expect(recent.get(viewOf(buffer), 0, 3)).toBeUndefined()
    expect(recent.get(bytesOf('one'), 0, 3)).toBe('one')
  })
})
