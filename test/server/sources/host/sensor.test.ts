import { describe, expect, it } from 'vitest'
import { HostReader } from '../../../../server/sources/host/reader.ts'
import { HostSensor } from '../../../../server/sources/host/sensor.ts'
import { systemAccess } from '../../../../server/sources/host/snapshot.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

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
    expect(() => sensor.check(metric, new Map([['cpu', 9]]))).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    )
  })
})
