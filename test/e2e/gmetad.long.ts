/** Cinnabar in gmond's place: what Ganglia's own gmetad and gmond make of it. */

import { createSocket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../server/kernel/core/clock.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import { Hub } from '../../server/kernel/metrics/hub.ts'
import { AllowedSenders, SensorsByTenant } from '../../server/kit/by-tenant.ts'
import type { Doors } from '../../server/kit/door.ts'
import { type Config, defaultConfig } from '../../server/start/config.ts'
import { GmetricSensor } from '../../server/wings/gmetric/sensor.ts'
import { type GmetricListening, listenGmetric } from '../../server/wings/gmetric/source.ts'
import { freePort } from '../support/free-port.ts'
import { Ganglia, MODULES, missing, reported } from '../support/ganglia.ts'
import { type Element, hostsOf, metricsOf } from '../support/ganglia-xml.ts'
import { handKit } from '../support/hand-kit.ts'

const howTo = missing.length > 0 ? ` (not installed: apt-get install ${missing.join(' ')}, services stopped)` : ''
const waiting = { timeout: 120_000, interval: 200 }

let ganglia: Ganglia
let sensor: GmetricSensor
let listening: GmetricListening
let doors: Doors

async function start(more: Partial<Config['gmetric']> = {}): Promise<void> {
  const config = {
    ...defaultConfig().gmetric,
    listen: { host: '127.0.0.1', port: 0 },
    listenNamed: true,
    xml: { host: '127.0.0.1', port: 0 },
    ...more,
  }
  const clock = systemClock()
  const hub = new Hub(clock)
  const log = createLogger('silent')
  sensor = new GmetricSensor(config, hub, clock)
  doors = handKit(hub, clock).doors
  listening = await listenGmetric(
    new SensorsByTenant({ own: sensor, others: [] }),
    new AllowedSenders(config.xmlAllow),
    config,
    { log, door: doors },
  )
}

beforeEach(() => {
  ganglia = new Ganglia()
})
afterEach(async () => {
  await ganglia.stop()
  await doors.close()
})

const here = () => `host = 127.0.0.1 port = ${listening.packets?.port}`
const shown = () => reported(listening.xml?.port ?? 0)

// Ganglia is no package of npm, and not every machine has it.
describe.skipIf(missing.length > 0)(`in gmond's place${howTo}`, () => {
  test('gmetad polls it, writes its files, and tells the web front end', async () => {
    await start({ cluster: 'real cluster' })
    const modules = ['cpu', 'load', 'mem'].map((name) => `module { name = "${name}_module" path = "mod${name}.so" }`)
    ganglia.gmond(
      `mute = no deaf = yes module_dir = "${MODULES}" send_metadata_interval = 1`,
      `host { location = "1,2,3" }
       udp_send_channel { ${here()} }
       modules { module { name = "core_metrics" } ${modules.join(' ')} }
       collection_group { collect_once = yes time_threshold = 1 metric { name = "heartbeat" } metric { name = "location" } }
       collection_group {
         collect_every = 1 time_threshold = 1
         metric { name = "cpu_num" } metric { name = "load_one" } metric { name = "mem_total" }
       }`,
    )
    const spoof = ['-S', '10.0.0.9:web1']
    ganglia.gmetric(here(), '-n', 'depth', '-v', '7', '-t', 'uint16', '-s', 'derivative', ...spoof)
    for (const name of ['a/../b', 'a&b<c>d', 'größe', '..', 'x'.repeat(247)]) {
      ganglia.gmetric(here(), '-n', name, '-v', '1', '-t', 'uint8', ...spoof)
    }
    const about = ['-u', '<&>', '-g', 'a&b', '-D', "it's <so>", '-T', '&&']
    ganglia.gmetric(here(), '-n', 'words', '-v', '<&> \n', '-t', 'string', ...about, ...spoof)
    ganglia.gmetric(here(), '-n', 'depth', '-v', '8', '-t', 'uint16', '-S', '../10.0.0.10:../../web&2')
    const port = await freePort()
    const rrds = ganglia.gmetad(`127.0.0.1:${listening.xml?.port}`, port, await freePort())
    const files = [
      ['127.0.0.1', 'load_one'],
      ['127.0.0.1', 'mem_total'],
      ['web1', 'depth'],
      ['web1', 'a_.._b'],
      ['__SummaryInfo__', 'depth'],
      ['.._.._web_2', 'depth'],
    ]
    await vi.waitFor(() => {
      for (const [host = '', metric] of files) {
        expect(existsSync(join(rrds, 'real cluster', host, `${metric}.rrd`)), `${host} ${metric}`).toBe(true)
      }
    }, waiting)
    const gmetad = await reported(port)
    expect(metricsOf(gmetad, 'web1')?.get('depth')?.attributes).toMatchObject({ VAL: '7', TYPE: 'uint16' })
    expect(Number(metricsOf(gmetad, '127.0.0.1')?.get('cpu_num')?.attributes['VAL'])).toBeGreaterThan(0)
    expect(metricsOf(gmetad, 'web1')?.get('words')?.attributes).toMatchObject({ VAL: '__> \n', UNITS: '__>' })
    const own = hostsOf(await shown()).find(({ attributes }) => attributes['IP'] === '127.0.0.1')
    expect(own?.attributes).toMatchObject({ LOCATION: '1,2,3', TMAX: '20', DMAX: '86400' })
    expect(Number(own?.attributes['GMOND_STARTED'])).toBeGreaterThan(1_600_000_000)
    expect(ganglia.alive).toBe(true)
  })

  test('no sender ends gmetad through it, which keeps numbers and extra elements unchecked', async () => {
    await start({ cluster: 'crowd' })
    ganglia.gmetric(here(), '-n', 'huge', '-v', '1e130', '-t', 'double', '-S', '10.0.0.9:web1')
    for (let host = 1; host <= 200; host++) {
      const about = ['-D', `what host ${host} says of it`, '-g', `group ${host}`, '-S', `10.0.1.${host}:h${host}`]
      ganglia.gmetric(here(), '-n', 'load', '-v', '1', '-t', 'uint8', ...about)
    }
    ganglia.gmetric(here(), '-n', 'last', '-v', '1', '-t', 'uint8', '-S', '10.0.0.10:web2')
    const port = await freePort()
    const rrds = ganglia.gmetad(`127.0.0.1:${listening.xml?.port}`, port, await freePort())
    const written = () => existsSync(join(rrds, 'crowd', 'web2', 'last.rrd'))
    await vi.waitFor(() => expect(written()).toBe(true), waiting)
    expect(metricsOf(await reported(port), 'web1')?.get('huge')?.attributes).toMatchObject({ TYPE: 'string' })
    expect(ganglia.alive).toBe(true)
  })

  test('its XML says of every packet of gmetric what gmond says of it', async () => {
    await start()
    const [udp, tcp] = [await freePort(), await freePort()]
    ganglia.gmond(
      'mute = yes deaf = no',
      `udp_recv_channel { bind = 127.0.0.1 port = ${udp} } tcp_accept_channel { bind = 127.0.0.1 port = ${tcp} }`,
    )
    await vi.waitFor(() => reported(tcp), waiting)
    const values = ['int8 -1', 'uint8 255', 'int16 -300', 'uint16 7', 'int32 -70000', 'uint32 4294967295']
    const about = ['-u', 'Celsius', '-g', 'rooms,cellar', '-C', 'home', '-D', 'the cellar', '-T', 'Cellar']
    const sent = [
      ...[...values, 'float 1.5', 'double 0.25', 'string two words'].map((text, index) => {
        const [type = '', ...value] = text.split(' ')
        return ['-n', `m${index}`, '-t', type, '-v', value.join(' ')]
      }),
      ...['zero', 'positive', 'negative', 'both', 'derivative'].map((slope) => {
        return ['-n', slope, '-v', '1', '-t', 'uint32', '-s', slope, '-x', '30', '-d', '300']
      }),
      ['-n', 'temp', '-v', '36.6', '-t', 'float', ...about, '-S', '10.0.0.9:spoofed.example'],
      ['-H', '-S', '10.0.0.9:spoofed.example'],
    ]
    for (const channel of [here(), `host = 127.0.0.1 port = ${udp}`]) {
      for (const options of sent) ganglia.gmetric(channel, ...options)
    }
    await vi.waitFor(async () => {
      const [ours, gmonds] = [await shown(), await reported(tcp)]
      for (const host of ['127.0.0.1', '10.0.0.9']) {
        const theirs = plain(metricsOf(gmonds, host))
        expect(theirs).toHaveLength(host === '127.0.0.1' ? 14 : 1)
        expect(plain(metricsOf(ours, host))).toEqual(theirs)
      }
      expect(namesOf(ours)).toContain('10.0.0.9 spoofed.example')
      expect(namesOf(gmonds)).toContain('10.0.0.9 spoofed.example')
    }, waiting)
  })

  test('a gmond that was there before is asked for what it said of its metrics', async () => {
    const port = await freePort()
    const before = createSocket('udp4').on('message', (bytes) => {
      if (bytes.includes('load_one') && bytes.readUInt32BE() === 134) said()
    })
    let said = () => {}
    const hasSaid = new Promise<void>((resolve) => {
      said = resolve
    })
    await new Promise<void>((resolve) => before.bind(port, '127.0.0.1', resolve))
    ganglia.gmond(
      `mute = no deaf = no module_dir = "${MODULES}" send_metadata_interval = 0`,
      `udp_send_channel { host = 127.0.0.1 port = ${port} bind = 127.0.0.2 }
       udp_recv_channel { bind = 127.0.0.2 port = ${port} }
       modules { module { name = "core_metrics" } module { name = "load_module" path = "modload.so" } }
       collection_group { collect_every = 1 time_threshold = 1 metric { name = "load_one" } }`,
    )
    await hasSaid
    await new Promise<void>((resolve) => before.close(resolve))
    await start({ listen: { host: '127.0.0.1', port }, requestMetadata: 'sender' })
    await vi.waitFor(() => {
      const [series] = sensor.series('gmetric.load_one')
      expect(series?.received.metadata).toMatchObject({ type: 'float', slope: 3 })
      expect(series?.labels.host).toBe('127.0.0.2')
    }, waiting)
    expect(sensor.status().counters['asked']).toBeGreaterThan(0)
  })

  test('it hears what is sent to the group that gmond joins', async () => {
    await start({ multicast: '239.2.11.71', multicastInterface: '127.0.0.1' })
    const group = `mcast_join = 239.2.11.71 mcast_if = lo port = ${listening.packets?.port}`
    ganglia.gmetric(group, '-n', 'cast', '-v', '5', '-t', 'uint8')
    ganglia.gmetric(here(), '-n', 'direct', '-v', '6', '-t', 'uint8')
    await vi.waitFor(() => {
      expect([...sensor.metrics()].map(({ name }) => name).toSorted()).toEqual(['gmetric.cast', 'gmetric.direct'])
    }, waiting)
    expect(sensor.status().counters).toMatchObject({ packets: 4, values: 2 })
  })
})

/** What must be equal: all but how long ago it was. */
function plain(metrics: ReadonlyMap<string, Element> | undefined) {
  return [...(metrics?.values() ?? [])]
    .map(({ attributes: { NAME = '', TN: _, ...attributes }, children }) => ({
      NAME,
      ...attributes,
      extra: children.flatMap((data) => data.children.map((element) => element.attributes)),
    }))
    .toSorted((a, b) => (a.NAME < b.NAME ? -1 : 1))
}

function namesOf(text: string): string[] {
  return hostsOf(text).map(({ attributes }) => `${attributes['IP']} ${attributes['NAME']}`)
}
