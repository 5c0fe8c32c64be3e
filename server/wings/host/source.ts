/** `host.*`: the machine that the server runs on. */
import type { Source } from '../../kit/source.ts'
import type { hostSection } from './config.ts'
import { HostReader } from './reader.ts'
import { HostSensor } from './sensor.ts'
import { systemAccess } from './snapshot.ts'

export const host: Source<typeof hostSection> = {
  open({ producer, node, turnClock }) {
    const reader = new HostReader(systemAccess())
    return { sensors: [new HostSensor(producer.name, reader, turnClock, process.platform, node)] }
  },
}
