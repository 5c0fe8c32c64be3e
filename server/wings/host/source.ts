/** `host.*`: the machine that the server runs on. */
import type { Source } from '../../kit/source.ts'
import type { hostSection } from './config.ts'
import { HostReader } from './reader.ts'
import { HostSensor } from './sensor.ts'
import { systemAccess } from './snapshot.ts'

export const host: Source<typeof hostSection> = {
  open({ self, turnClock, feed }) {
    const reader = new HostReader(systemAccess())
    feed.add(new HostSensor(self.name, reader, turnClock, process.platform, self.node))
    return {}
  },
}
