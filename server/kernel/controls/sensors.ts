/** `sensor.fence` and `sensor.resume`: drop the values of a sensor, and accept them again [MON 10]. A fence survives restarts. */
import { ADMIN_ROLE, type Identity, maySee } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Change } from '../../../storage/store.ts'
import { StatusError } from '../core/errors.ts'
import { sensorName } from '../metrics/fences.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Sensor } from '../metrics/metric.ts'
import { type Control, type ControlArguments, type ControlParameter, ok } from './control.ts'

export interface SensorControlsOptions {
  readonly hub: Hub
  readonly change: (change: Change) => void
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
}

const parameter: ControlParameter = {
  name: 'sensor',
  type: BasicType.STRING,
  description: 'Its name in `producer.sensors`.',
}

export function sensorControls({ hub, change, stored }: SensorControlsOptions): Control[] {
  const fence: Control = {
    name: 'sensor.fence',
    description: 'Drops the values of a sensor until `sensor.resume`: none is sent, and GET returns VOID.',
    parameters: [parameter],
    prepare(args, { identity }) {
      const { sensor, name } = sensorOf(hub, args, identity)
      return async () => {
        if (hub.fences.has(sensor)) return ok(`${name} is fenced already`)
        const fenced = hub.fence(sensor)
        change({ put: 'fence', row: { sensor: name } })
        await fenced
        await stored()
        return ok(`${name} is fenced`)
      }
    },
  }
  const resume: Control = {
    name: 'sensor.resume',
    description: 'Accepts the values of a fenced sensor again, from the next one on.',
    parameters: [parameter],
    prepare(args, { identity }) {
      const { sensor, name } = sensorOf(hub, args, identity)
      return async () => {
        if (!hub.fences.has(sensor)) return ok(`${name} is not fenced`)
        const resumed = hub.resume(sensor)
        change({ remove: 'fence', sensor: name })
        await resumed
        await stored()
        return ok(`${name} is resumed`)
      }
    },
  }
  return [fence, resume]
}

/**
 * Throws StatusError. A sensor of another tenant does not exist for the caller; the producer's own sensors serve every tenant,
 * so only an admin may fence them.
 */
function sensorOf(hub: Hub, args: ControlArguments, identity: Identity): { sensor: Sensor; name: string } {
  const name = args.get('sensor') as string
  const sensor = hub.sensors.find((one) => maySee(identity, one.owner) && sensorName(one) === name)
  if (sensor === undefined) {
    throw new StatusError('INVALID_ARGUMENT', `no sensor ${name}: \`producer.sensors\` lists the sensors`)
  }
  if (sensor.owner === 'producer' && identity.role !== ADMIN_ROLE) {
    throw new StatusError('PERMISSION_DENIED', `${name} is the producer's own: only the role admin may do this`)
  }
  return { sensor, name }
}
