/** `host.*`: the machine that the server runs on. */
import type { Source } from '../source.ts'
import type { hostSection } from './config.ts'
import { HostReader } from './reader.ts'
import { HostSensor } from './sensor.ts'
import { systemAccess } from './snapshot.ts'

export const host: Source<typeof hostSection> = {
  open({ producer, turnClock }) {
    return { sensors: [new HostSensor(producer.name, new HostReader(systemAccess()), turnClock, process.platform)] }
  },
}
