/** `host.*`: the machine that the server runs on. */
import { z } from 'zod'
import { section } from '../../config/schema.ts'
import { integer, key } from '../../config/value-types.ts'
import type { Source } from '../source.ts'
import { systemAccess } from './access.ts'
import { HostReader } from './reader.ts'
import { HostSensor } from './sensor.ts'

const hostSection = section(
  z
    .strictObject({
      interval_ms: key(
        integer(10, 86_400_000),
        1_000n,
        'Milliseconds between two readings, where a consumer names none.',
      ),
    })
    .describe('The metrics of this machine.'),
)

export const host: Source<typeof hostSection> = {
  section: hostSection,
  open({ producer, turnClock }) {
    return { sensors: [new HostSensor(producer.name, new HostReader(systemAccess()), turnClock, process.platform)] }
  },
}
