/** Mosquitto: MQTT 3.1.1, QoS 1 from end to end, a session that outlives its connection. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { ServerUnderTest } from '../processes/server-under-test.ts'
import { type Peer, versionOf } from './contender.ts'

const PROGRAM = 'mosquitto'
const AUTOSAVE_SECONDS = 1

export function mosquitto(values: number): Peer {
  return {
    name: 'mosquitto, QoS 1',
    settings: `persistence true, autosave_interval ${AUTOSAVE_SECONDS} s (no fsync before PUBACK), no limit queued, 200 in flight; the consumer's PUBACKs have no answer`,
    values,
    missing: () => (versionOf(PROGRAM, '-h') === undefined ? `${PROGRAM} is not installed` : undefined),
    async start(directory) {
      const port = await freePort()
      const config = join(directory, 'mosquitto.conf')
      writeFileSync(
        config,
        `listener ${port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location ${directory}/
autosave_interval ${AUTOSAVE_SECONDS}
max_queued_messages 0
max_inflight_messages 200
log_type error
`,
      )
      const server = await ServerUnderTest.start({ program: PROGRAM, args: ['-c', config], port })
      return {
        server,
        publisher: { end: 'mqtt-publisher', port, values },
        consumer: { end: 'mqtt-consumer', port, values },
      }
    },
  }
}
