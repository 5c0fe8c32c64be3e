/** Where the REC of a series has its value. Frames are written by hand; what is no such REC is told apart without an error. */
import { describe, expect, it } from 'vitest'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { checkTyped, LabelledReader, placeOfValue, readLabels } from '../../../protocol/monitor/labelled.ts'
import { readTyped } from '../../../protocol/monitor/value.ts'
import { f64, join, str, u32 } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

const label = (name: string, text: string) => join(str(name), u32(7), str(text))
const record = (fields: number, ...parts: Uint8Array[]) => join(u32(9), u32(fields), ...parts)
const value = join(str('value'), u32(5), f64(1.5))
const labelled = record(3, label('name', 'host.load.one'), label('producer', 'east'), value)

function place(bytes: Uint8Array, at = 0, end = bytes.length): number {
  return placeOfValue(viewOf(bytes), at, end)
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

describe('the REC of a series', () => {
  it('has its value after the name of its last field', () => {
    const at = place(labelled)
    expect(labelled.length - at).toBe(12)
    expect([...readLabels(labelled, 0, at)]).toEqual([
      ['name', 'host.load.one'],
      ['producer', 'east'],
    ])
  })

  it('may stand anywhere', () => {
    const bytes = join(u32(1), u32(2), labelled, u32(3))
    expect(place(bytes, 8, bytes.length - 4)).toBe(8 + place(labelled))
  })

  it.each([
    ['a value of another type', join(u32(5), f64(1))],
    ['a REC without `value`', record(1, label('name', 'x'))],
    ['a REC whose `value` is not the last', record(2, value, label('name', 'x'))],
    ['a REC with a field that is no text', record(2, join(str('n'), u32(2), u32(1)), value)],
    ['an empty REC', record(0)],
    ['a count beyond the end', record(9, label('name', 'x'), value)],
    ['a length beyond the end', record(2, join(u32(0xfffffff0)), value)],
  ])('is not %s', (_, bytes) => {
    expect(place(bytes)).toBe(-1)
  })

  it('is not what is cut off, at whichever byte', () => {
    for (let end = 0; end < place(labelled) + 4; end++) expect(place(labelled, 0, end)).toBe(-1)
  })

  it('has each label once, with a name and a text', () => {
    const twice = record(3, label('host', 'a'), label('host', 'b'), value)
    expect(() => readLabels(twice, 0, place(twice))).toThrow('label host stands twice')
    const bytes = record(2, join(str('host'), u32(7), u32(1), Uint8Array.of(0xff, 0, 0, 0)), value)
    expect(() => readLabels(bytes, 0, place(bytes))).toThrow('label host is not UTF-8')
    const nameless = record(2, label('', 'a'), value)
    expect(() => readLabels(nameless, 0, place(nameless))).toThrow('an empty name')
  })
})

describe('a value that is passed on', () => {
  it.each([
    ['a number', join(u32(5), f64(1))],
    ['VOID', u32(11)],
    ['a text', join(u32(7), str('x'))],
    ['a REC', labelled],
  ])('may be %s', (_, bytes) => {
    expect(() => checkTyped(bytes, viewOf(bytes), 0, bytes.length)).not.toThrow()
  })

  it('is nested at most four deep, with the REC around it', () => {
    let bytes: Uint8Array = u32(11)
    for (let depth = 1; depth <= 4; depth++) {
      bytes = record(1, str('in'), bytes)
      const check = (around: number) => () => checkTyped(bytes, viewOf(bytes), 0, bytes.length, around)
      expect(check(0)).not.toThrow()
      if (depth < 4) expect(check(1)).not.toThrow()
      else expect(check(1)).toThrow('nested deeper')
    }
  })

  it('is judged as it would be read, whatever the bytes are', () => {
    const random = new Random(20)
    let sound = 0
    const other: Uint8Array[] = []
    for (let round = 0; round < times({ short: 5_000, long: 20_000 }); round++) {
      const words = 1 + random.below(6)
      const bytes = join(...Array.from({ length: words }, () => u32(random.below(13))))
      const isSound = reads(bytes)
      if (isSound) sound++
      if (isAccepted(bytes) !== isSound) other.push(bytes)
    }
    expect(other).toEqual([])
    expect(sound).toBeGreaterThan(25)
  })
})

function isAccepted(bytes: Uint8Array): boolean {
  try {
    checkTyped(bytes, viewOf(bytes), 0, bytes.length)
    return true
  } catch {
    return false
  }
}

function reads(bytes: Uint8Array): boolean {
  try {
    const reader = new XdrReader(bytes)
    readTyped(reader)
    reader.finish()
    return true
  } catch {
    return false
  }
}

describe('LabelledReader', () => {
  const read = (values: LabelledReader, bytes: Uint8Array, at = 0) => values.reset(bytes, at).typed()

  it('reads what readTyped reads, the first time and again, wherever it stands', () => {
    const values = new LabelledReader()
    const other = record(
      3,
      label('name', 'host.load.one'),
      label('producer', 'west'),
      join(str('value'), u32(2), u32(7)),
    )
    const bare = join(u32(5), f64(2.5))
    for (let round = 0; round < 3; round++) {
      for (const bytes of [labelled, other, bare, record(1, value), record(1, label('name', 'x'))]) {
        expect(read(values, join(u32(1), bytes), 4)).toEqual(readTyped(new XdrReader(bytes)))
      }
    }
  })

  it('ends where the value ends', () => {
    const values = new LabelledReader()
    for (let round = 0; round < 2; round++) {
      values.reset(labelled).typed()
      expect(values.remaining).toBe(0)
    }
  })

  it('gives each time fields of their own', () => {
    const values = new LabelledReader()
    for (let round = 0; round < 3; round++) {
      const { value: fields } = read(values, labelled) as unknown as { value: { name: string; value: unknown }[] }
      expect(fields[0]).toMatchObject({ name: 'name', value: 'host.load.one' })
      fields[0]!.value = 'changed'
      fields.length = 0
    }
  })

  it('refuses a broken value after known labels as it does after new ones', () => {
    const values = new LabelledReader()
    read(values, labelled)
    const broken = join(labelled.subarray(0, place(labelled)), u32(99), f64(1))
    expect(() => read(values, broken)).toThrow(expect.objectContaining({ code: 'BAD_TYPE' }))
    expect(() => read(new LabelledReader(), broken)).toThrow(expect.objectContaining({ code: 'BAD_TYPE' }))
    expect(() => read(values, labelled.subarray(0, labelled.length - 4))).toThrow(
      expect.objectContaining({ code: 'TRUNCATED' }),
    )
  })

  it('gives labels that are not UTF-8 as bytes, each time', () => {
    const values = new LabelledReader()
    const bytes = record(2, join(str('name'), u32(7), u32(4), Uint8Array.of(255, 255, 255, 255)), value)
    for (let round = 0; round < 2; round++) {
      const { value: fields } = read(values, bytes) as unknown as { value: { value: Uint8Array }[] }
      expect([...fields[0]!.value]).toEqual([255, 255, 255, 255])
      fields[0]!.value.fill(0)
    }
  })

  it('reads texts as any reader does, although it keeps them', () => {
    const keeping = new LabelledReader()
    const long = 'x'.repeat(65)
    for (const text of ['load', 'host', 'load', '', 'größe', long, 'load', long]) {
      expect(keeping.reset(str(text)).string()).toBe(text)
      expect(keeping.reset(str(text)).stringOrBytes()).toBe(text)
    }
    const broken = join(u32(1), Uint8Array.of(255, 0, 0, 0))
    expect(() => keeping.reset(broken).string()).toThrow('not UTF-8')
    expect(keeping.reset(broken).stringOrBytes()).toEqual(Uint8Array.of(255))
    expect(() => keeping.reset(str('load')).string(3)).toThrow('4 bytes where at most 3')
  })

  it('reads the values of more series than it has places for', () => {
    const values = new LabelledReader()
    for (let index = 0; index < times({ short: 10_000, long: 20_000 }); index++) {
      const text = `series ${index % 9_000}`
      const bytes = record(2, label('name', text), value)
      expect(read(values, bytes)).toMatchObject({
        value: [
          { name: 'name', value: text },
          { name: 'value', value: 1.5 },
        ],
      })
    }
  })
})
