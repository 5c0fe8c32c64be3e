/** Where sensors are added, and where those that listen report what becomes of their series: the hub, as far as wings see it. */
import type { Hub } from '../kernel/metrics/hub.ts'
import type { SensorHub } from '../kernel/metrics/sensor-door.ts'

export type { Guest, SensorHub } from '../kernel/metrics/sensor-door.ts'

/** Plug-ins get `add`, `born`, `emit` and `died` as well, word for word. Nothing stands between a sensor and the hub. */
export interface Feed extends Pick<Hub, keyof SensorHub> {
  /** Passes on a value that is encoded already: `tail` holds its basic type and the value. */
  readonly emitEncoded: Hub['emitEncoded']
  /** The same for several values of a series, in their order: each subscription gets all of them before the next does. */
  readonly emitRun: Hub['emitRun']
}
