/** The kinds of sensors. Nothing else in the server tells them apart, except for the door that admits the sensors of others. */
import type { EventSensor, ListeningSensor, LocalSensor, PolledSensor, RemoteSensor, Sensor } from './metric.ts'

/** Sensors of each kind, in their order. */
export interface SensorsByKind {
  readonly polled: readonly PolledSensor[]
  readonly listening: readonly ListeningSensor[]
  readonly events: readonly EventSensor[]
  readonly remote: readonly RemoteSensor[]
}

export function byKind(sensors: readonly Sensor[]): SensorsByKind {
  const polled: PolledSensor[] = []
  const listening: ListeningSensor[] = []
  const events: EventSensor[] = []
  const remote: RemoteSensor[] = []
  for (const sensor of sensors) {
    if (sensor.polled === true) polled.push(sensor)
    else if (sensor.polled === false) listening.push(sensor)
    else if (sensor.polled === 'event') events.push(sensor)
    else remote.push(sensor)
  }
  return { polled, listening, events, remote }
}

export function isListening(sensor: Sensor): sensor is ListeningSensor {
  return sensor.polled === false
}

/** Whether a sensor is one of this producer. */
export function isLocal(sensor: Sensor): sensor is LocalSensor {
  return sensor.polled !== 'remote'
}

/** Whether a sensor is one of other producers: the nodes of a cluster are none, together they are this one. */
export function isElsewhere(sensor: Sensor): sensor is RemoteSensor {
  return sensor.polled === 'remote' && sensor.ofNodes === undefined
}
