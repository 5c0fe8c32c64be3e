/** The layout is that of docs/protocol/gmetric.md, put together by hand. */
import { expect, test } from 'vitest'
import { HostModel, metadataDatagram, valueDatagram } from '../../../cli/demo/hosts.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const HOST = { name: 'h', address: '10.0.0.1', cores: 4, memoryGiB: 8, diskGB: 80, calm: 0.25, rush: 0.4, network: 1e6 }
const SECONDS = 1_200

function year(host = HOST, seed = 1) {
  const model = new HostModel(host, seed)
  return Array.from({ length: SECONDS }, () => model.next())
}

test('a value is a message 135 for another host, with its format and an IEEE double', () => {
  const expected = '00000087 00000005 323a77656200 0000 00000003 666f6f00 00000001 00000004 252e3266 3ff8000000000000'
  expect(hex(valueDatagram('2:web', 'foo', 1.5))).toBe(expected.replaceAll(' ', ''))
})

test('a text is a message 133', () => {
  const expected = '00000085 00000005 323a77656200 0000 00000003 666f6f00 00000001 00000002 25730000 00000002 36310000'
  expect(hex(valueDatagram('2:web', 'foo', '61'))).toBe(expected.replaceAll(' ', ''))
})

test('metadata is a message 128 with type, unit, slope, tmax, dmax, group and description', () => {
  const about = { unit: '%', group: 'cpu', description: 'busy' }
  const expected = [
    '00000080 00000005 323a776562000000 00000003 666f6f00 00000001',
    '00000006 646f75626c650000 00000003 666f6f00 00000001 25000000 00000003 0000003c 00000000',
    '00000002 00000005 47524f5550000000 00000003 63707500 00000004 44455343 00000004 62757379',
  ]
  expect(hex(metadataDatagram('2:web', 'foo', 'number', about))).toBe(expected.join('').replaceAll(' ', ''))
})

test('what a host measures is possible, and moves', () => {
  const all = year()
  const numbers = (metric: string) => all.map((readings) => Number(readings?.[metric]))
  for (const readings of all) {
    const shares = ['cpu_user', 'cpu_system', 'cpu_wio', 'cpu_idle'].map((metric) => Number(readings?.[metric]))
    for (const share of shares) expect(share).toBeGreaterThanOrEqual(0)
    expect(shares.reduce((sum, share) => sum + share)).toBeCloseTo(100)
    const memory = Number(readings?.['mem_free']) + Number(readings?.['mem_cached'])
    expect(memory).toBeLessThan(Number(readings?.['mem_total']))
    expect(Number(readings?.['mem_free'])).toBeGreaterThan(0)
  }
  const loads = numbers('load_one')
  expect(Math.max(...loads) / Math.min(...loads)).toBeGreaterThan(1.5)
  // An average of a minute does not jump.
  expect(Math.max(...loads.slice(1).map((load, index) => Math.abs(load - loads[index]!)))).toBeLessThan(0.5)
  expect(numbers('disk_free').at(-1)).toBeLessThan(numbers('disk_free')[0]!)
})

test('it is the same in every run, and differs from host to host', () => {
  expect(year()).toEqual(year())
  expect(year(HOST, 2)).not.toEqual(year())
})

test('a host that goes silent comes back', () => {
  const isSilent = year({ ...HOST, goesSilent: true } as typeof HOST).map((readings) => readings === undefined)
  expect([isSilent[0], isSilent[301], isSilent[601]]).toEqual([false, true, false])
})
