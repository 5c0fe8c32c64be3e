/** `gmetric.*` and `ganglia.*`: the values and hosts of Ganglia. */
import { sensorsByTenant } from '../by-tenant.ts'
import type { Source } from '../source.ts'
import type { gmetricSection } from './config.ts'
import { listenGmetric } from './listen.ts'
import { GmetricSensor } from './sensor.ts'

export const gmetric: Source<typeof gmetricSection> = {
  open({ hub, clock, log, quotas, pacing }, config) {
    const sensors = sensorsByTenant(config, quotas, (section, feed) => new GmetricSensor(section, hub, clock, feed))
    return {
      sensors: sensors.all().flatMap((sensor) => [sensor, sensor.liveness]),
      async listen(listeners) {
        const { packets, xml } = await listenGmetric(sensors, config, { log, pacing }, listeners.opened)
        listeners.bound({ key: 'gmetric.listen', use: 'gmetric', transport: 'udp' }, packets)
        listeners.bound({ key: 'gmetric.xml', use: "gmond's xml", transport: 'tcp' }, xml)
      },
      sweep() {
        for (const sensor of sensors.all()) {
          sensor.sweep()
          sensor.liveness.sweep()
        }
      },
    }
  },
}
