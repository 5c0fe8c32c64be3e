/** Numbers of any kind where the kernel has its own: each is measured or VOID, never wrong, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { valueProblem } from '../../../../server/kernel/metrics/value-problem.ts'
import { HostReader } from '../../../../server/wings/host/reader.ts'
import { HostSensor } from '../../../../server/wings/host/sensor.ts'
import { times } from '../../../support/long.ts'
import { numberTexts, uint64s } from '../../../support/odd-numbers.ts'
import { Readers } from '../../../support/readers.ts'
import { fakeHost } from './fake-host.ts'

const number = fc.oneof(
  uint64s.map(String),
  numberTexts.map((text) => text.trim() || '-'),
)
const columns = (count: number) => fc.array(number, { minLength: count, maxLength: count }).map((all) => all.join(' '))
/** The files, and how much room a file system has. */
const states = fc.record({
  stat: fc.tuple(columns(8), columns(8), number, number).map(([all, one, running, boot]) => {
    return `cpu  ${all}\ncpu0 ${one}\nprocs_running ${running}\nbtime ${boot}\n`
  }),
  loadavg: columns(3).map((loads) => `${loads} 1/2 3\n`),
  meminfo: columns(4).map((sizes) => {
    const [total, free, cached, swap] = sizes.split(' ')
    return `MemTotal: ${total} kB\nMemFree: ${free} kB\nCached: ${cached} kB\nSwapFree: ${swap} kB\n`
  }),
  diskstats: fc.tuple(columns(8), columns(8)).map(([one, other]) => `8 0 sda ${one}\n8 16 sdb ${other}\n`),
  net: fc.tuple(columns(16), columns(16)).map(([one, other]) => `a |\nb |\n eth0: ${one}\n eth1: ${other}\n`),
  uptime: columns(2),
  space: fc.record({ bsize: uint64s, blocks: uint64s, bfree: uint64s, bavail: uint64s }),
})

it('are measured, or VOID, whatever they were before', () =>
  fc.assert(
    fc.asyncProperty(fc.array(states, { minLength: 1, maxLength: 3 }), async (given) => {
      const readers = new Readers()
      const host = fakeHost()
      const sensor = new HostSensor('n1', new HostReader(host), readers.clock, 'linux')
      readers.hub.add(sensor)
      readers.bind('host.*')
      for (const { stat, loadavg, meminfo, diskstats, net, uptime, space } of given) {
        const files = { stat, loadavg, meminfo, diskstats, uptime, 'net/dev': net, 'self/mounts': 'd / ext4 rw 0 0\n' }
        for (const [name, text] of Object.entries(files)) host.files.set(`/proc/${name}`, text)
        host.spaces.set('/', space)
        readers.clock.advance(1_000)
        for (const { name, value } of await readers.read()) {
          expect(valueProblem(value), name).toBeUndefined()
          if (value.type === BasicType.DOUBLE) expect(value.value, name).toSatisfy(Number.isFinite)
          if (name.startsWith('host.cpu.') && value.type === BasicType.DOUBLE)
            expect(value.value).toBeLessThanOrEqual(100)
        }
      }
      expect(sensor.status().counters['failures']).toBe(0)
    }),
    { numRuns: times({ short: 10, long: 50 }) },
  ))
