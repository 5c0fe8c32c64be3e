/** `sensor.fence` and `sensor.resume`: keeps the values of a sensor out, and lets them in again [MON 10]. Outlives the server. */
import { ADMIN_ROLE, type Identity, mayRead } from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Change } from '../../storage/store.ts'
import { StatusError } from '../core/errors.ts'
import { sensorName } from '../metrics/fences.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Sensor } from '../metrics/metric.ts'
import { type Control, type ControlParameter, type Given, ok } from './control.ts'

export interface SensorControlsOptions {
  readonly hub: Hub
  readonly change: (change: Change) => void
  /** Resolves when everything changed so far is stored. */
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
    description: 'Keeps the values of a sensor out: none is sent, and GET gives VOID, until `sensor.resume`.',
    parameters: [parameter],
    prepare(args, { identity }) {
      const { sensor, name } = sensorOf(hub, args, identity)
      return async () => {
        if (hub.fences.has(sensor)) return ok(`${name} was fenced already`)
        hub.fence(sensor)
        change({ put: 'fence', row: { sensor: name } })
        await stored()
        return ok(`${name} is fenced`)
      }
    },
  }
  const resume: Control = {
    name: 'sensor.resume',
    description: 'Lets the values of a fenced sensor in again, from the next one on.',
    parameters: [parameter],
    prepare(args, { identity }) {
      const { sensor, name } = sensorOf(hub, args, identity)
      return async () => {
        if (!hub.fences.has(sensor)) return ok(`${name} was not fenced`)
        hub.resume(sensor)
        change({ remove: 'fence', sensor: name })
        await stored()
        return ok(`${name} goes on`)
      }
    },
  }
  return [fence, resume]
}

/** Throws StatusError: another tenant's is as absent; what is the producer's own is everybody's, and so no tenant's to fence. */
function sensorOf(hub: Hub, args: Given, identity: Identity): { sensor: Sensor; name: string } {
  const name = args.get('sensor') as string
  const sensor = hub.sensors.find((one) => mayRead(identity, one.owner) && sensorName(one) === name)
  if (sensor === undefined) {
    throw new StatusError('INVALID_ARGUMENT', `no sensor ${name}: \`producer.sensors\` lists what there is`)
  }
  if (sensor.owner === 'producer' && identity.role !== ADMIN_ROLE) {
    throw new StatusError('PERMISSION_DENIED', `${name} is the producer's own: only the role admin may do this`)
  }
  return { sensor, name }
}
