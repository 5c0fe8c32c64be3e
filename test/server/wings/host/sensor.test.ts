import { describe, expect, it } from 'vitest'
import type { AccessRequest } from '../../../../auth/permissions.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Count } from '../../../../server/kernel/accounts/quotas.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { HostReader } from '../../../../server/wings/host/reader.ts'
import { HostSensor } from '../../../../server/wings/host/sensor.ts'
import { systemAccess } from '../../../../server/wings/host/snapshot.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { Kept, Metrics, tester, text, uint } from '../../kernel/metrics/fixture.ts'
import { fakeHost } from './fake-host.ts'

const identity = { userId: 1, tenant: 'default', name: 'a', role: 'consumer' }

function sensorOn(readFile: (path: string) => string) {
  const access = { ...systemAccess(), platform: 'linux' as const, readFile }
  return new HostSensor('n1', new HostReader(access), new FakeClock(), 'linux')
}

describe('the host sensor', () => {
  it('measures with the declared type and the time of the clock', () => {
    const sensor = sensorOn(() => '0.50 0.40 0.30 2/345 6789\n')
    const metric = sensor.metric('host.load.five')
    expect(metric).toMatchObject({ kind: 'continuous', unit: '1' })
    expect(sensor.measure(metric!, new Map(), identity)).toEqual({
      value: { type: 5, value: 0.4 },
      time: 1_700_000_000_000_000,
    })
    expect(sensor.labels(metric!)).toEqual({ name: 'host.load.five', host: 'n1' })
  })

  it('gives VOID and counts a failure when a file cannot be read, instead of ending the process', () => {
    const sensor = sensorOn(() => {
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
    })
    expect(sensor.measure(sensor.metric('host.load.one')!, new Map(), identity).value).toEqual({
      type: 11,
      value: null,
    })
    expect(sensor.status()).toMatchObject({
      counters: { readings: 1, failures: 1 },
      detail: 'last failure: host.load.one: EMFILE: too many open files',
    })
  })

  it('refuses a CPU that is not there as an invalid argument', () => {
    const sensor = sensorOn(() => 'cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\n')
    const metric = sensor.metric('host.cpu.user')!
    expect(() => sensor.check(metric, new Map([['cpu', '9']]))).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    )
  })
})

describe('a pattern over parts of the host', () => {
  const DEVICES = 'Inter-| Receive | Transmit\n face |bytes packets|bytes packets\n lo: 1 1 1 1\n'
  const eth = (number: number): string => `eth${number}: ${number} 2 2 2\n`

  function monitored(netDev: string) {
    const metrics = new Metrics()
    const host = fakeHost()
    host.files.set('/proc/net/dev', netDev)
    host.files.set('/proc/stat', 'cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\n')
    metrics.hub.add(new HostSensor('n1', new HostReader(host), metrics.clock, 'linux'))
    const sink = new Kept()
    /** The interface and the value of each frame; null: VOID. */
    const taken = () => sink.frames.splice(0).map(({ rest }) => textOf(rest))
    return { metrics, clock: metrics.clock, host, sink, taken }
  }

  it('sends the values of each part, with its name', () => {
    const { metrics, sink, taken } = monitored(DEVICES + eth(1))
    metrics.hub.bind(metrics.instance('host.net.received_bytes', [text('interface', '*')]), sink)
    expect(taken()).toEqual(['lo 1', 'eth1 1'])
    metrics.hub.bind(metrics.instance('host.net.received_bytes', [text('interface', 'eth*')]), sink)
    expect(taken()).toEqual(['eth1 1'])
  })

  it('notices within ten sweeps what has come, and ends what is gone with one VOID', () => {
    const { metrics, host, sink, taken } = monitored(DEVICES + eth(1))
    const list = [text('interface', 'eth*'), uint('interval_ms', 3_600_000)]
    const binding = metrics.hub.bind(metrics.instance('host.net.received_bytes', list), sink)
    expect(taken()).toEqual(['eth1 1'])
    host.files.set('/proc/net/dev', DEVICES + eth(2))
    metrics.clock.advance(1000)
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    expect(taken()).toEqual(['eth1 VOID', 'eth2 2'])
    metrics.clock.advance(1000)
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    binding.end()
    expect(taken()).toEqual([])
  })

  it('sends nothing of what comes and goes while a binding pauses, and all of it afterwards', () => {
    const { metrics, host, sink, taken } = monitored(DEVICES + eth(1))
    const list = [text('interface', 'eth*'), uint('interval_ms', 3_600_000)]
    const binding = metrics.hub.bind(metrics.instance('host.net.received_bytes', list), sink)
    finish(binding.pause(true))
    expect(taken()).toEqual(['eth1 1'])
    host.files.set('/proc/net/dev', DEVICES + eth(2))
    metrics.clock.advance(1000)
    for (let second = 0; second < 20; second++) metrics.hub.sweep()
    expect(taken()).toEqual([])
    finish(binding.pause(false))
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    const came = taken()
    expect(new Set(came)).toEqual(new Set(['eth1 VOID', 'eth2 2']))
    expect(came.at(-1)).toBe('eth2 2')
    binding.end()
  })

  it('counts a part that has no room once, however often parts are looked for', () => {
    const count = new Count('metrics', () => 1)
    const { clock, host } = monitored(DEVICES + eth(1) + eth(2))
    const hub = new Hub(clock, { quotaOf: () => count })
    hub.add(new HostSensor('n1', new HostReader(host), clock, 'linux'))
    const rights = { judge: () => ({ allowed: true, because: '' }), mayBeAllowed: () => true, readsAll: () => true }
    const list = [text('interface', 'eth*')]
    const selection = finish(
      Selection.of(hub.sensors, tester, 'host.net.received_bytes', list, { intervalMs: 1000, rights }),
    )
    hub.bind(new MetricInstance(1, selection), new Kept())
    for (let second = 0; second < 60; second++) hub.sweep()
    expect([count.used, count.refused]).toEqual([1, 1])
  })

  it('notices what is no longer allowed as a loss, also when parts are looked for at that moment', () => {
    for (let after = 0, isOver = false; !isOver; after++) {
      const { clock, host } = monitored(DEVICES + eth(1) + eth(2))
      const hub = new Hub(clock)
      hub.add(new HostSensor('n1', new HostReader(host), clock, 'linux'))
      let denied = ''
      const judge = (_by: unknown, { argument }: AccessRequest) => {
        return { allowed: argument('interface') !== denied, because: '' }
      }
      const rights = { judge, mayBeAllowed: () => true, readsAll: () => true }
      const list = [text('interface', 'eth*')]
      const selection = finish(
        Selection.of(hub.sensors, tester, 'host.net.received_bytes', list, { intervalMs: 1000, rights }),
      )
      const instance = new MetricInstance(1, selection)
      const sink = new Kept()
      hub.bind(instance, sink)
      denied = 'eth1'
      const rematch = hub.rematch(instance)
      for (let step = 0; step < after; step++) isOver = rematch.next().done === true
      if (isOver) break
      for (let second = 0; second < 10; second++) hub.sweep()
      expect(finish(rematch), `after ${after} steps`).toBe('some')
    }
  })

  it('a part that is gone is no loss when rights change meanwhile, and gets its VOID', () => {
    const { metrics, host, sink, taken } = monitored(DEVICES + eth(1) + eth(2))
    const list = [text('interface', 'eth*'), uint('interval_ms', 3_600_000)]
    const instance = metrics.instance('host.net.received_bytes', list)
    metrics.hub.bind(instance, sink)
    taken()
    host.files.set('/proc/net/dev', DEVICES + eth(2))
    metrics.clock.advance(1000)
    expect(finish(metrics.hub.rematch(instance))).toBeUndefined()
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    expect(taken()).toEqual(['eth1 VOID'])
  })

  it('takes a step for each of a thousand parts, so that nobody else waits for all of them', () => {
    const all = Array.from({ length: 1000 }, (_, number) => eth(number)).join('')
    const { metrics, sink } = monitored(DEVICES + all)
    const instance = metrics.instance('host.net.received_bytes', [text('interface', '*')])
    metrics.hub.bind(instance, sink)
    const stepsOf = (work: Iterable<unknown>) => [...work].length
    expect(stepsOf(instance.selection.polled())).toBeGreaterThanOrEqual(1000)
    expect(stepsOf(instance.selection.check())).toBeGreaterThanOrEqual(2000)
    expect(stepsOf(metrics.hub.rematch(instance))).toBeGreaterThanOrEqual(3000)
  })

  it('keeps what it has while a file cannot be read', () => {
    const { metrics, host, sink, taken } = monitored(DEVICES + eth(1))
    const list = [text('interface', 'eth*'), uint('interval_ms', 3_600_000)]
    metrics.hub.bind(metrics.instance('host.net.received_bytes', list), sink)
    expect(taken()).toEqual(['eth1 1'])
    const { readFile } = host
    Object.assign(host, {
      readFile: () => {
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
      },
    })
    metrics.clock.advance(1000)
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    Object.assign(host, { readFile })
    metrics.clock.advance(1000)
    for (let second = 0; second < 10; second++) metrics.hub.sweep()
    expect(taken()).toEqual([])
  })

  it('takes the number of a CPU as an integer too', () => {
    const { metrics } = monitored(DEVICES)
    for (const cpu of [uint('cpu', 0), text('cpu', '0')]) {
      for (const name of ['host.cpu.user', 'host.cpu.u*']) {
        expect(metrics.select(name, [cpu]).args).toEqual([text('cpu', '0')])
      }
    }
    expect(() => metrics.select('host.disk.free', [uint('mount', 0)])).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    )
  })

  it('without an argument measures the whole, and sends no name of a part', () => {
    const { metrics, sink } = monitored(DEVICES + eth(1) + eth(2))
    metrics.hub.bind(metrics.instance('host.net.received_bytes'), sink)
    expect(sink.frames.map(({ rest }) => rest.readBigUInt64BE(rest.length - 8))).toEqual([3n])
  })
})

/** A REC {interface, value}, as text. */
function textOf(rest: Buffer): string {
  const at = rest.indexOf('interface') + 'interface'.length + 3 + 4
  const part = rest.subarray(at + 4, at + 4 + rest.readUInt32BE(at)).toString()
  const isVoid = rest.readUInt32BE(rest.length - 4) === BasicType.VOID
  return `${part} ${isVoid ? 'VOID' : rest.readBigUInt64BE(rest.length - 8)}`
}
