/** Redis Streams: XADD, XREADGROUP, XACK of each id by itself. */
import { freePort } from '../../support/free-port.ts'
import { ServerUnderTest } from '../processes/server-under-test.ts'
import { type Peer, versionOf } from './contender.ts'

const PROGRAM = 'redis-server'

export function redis(fsync: 'always' | 'everysec', values: number): Peer {
  return {
    name: `redis streams, ${fsync}`,
    settings: `appendonly yes, appendfsync ${fsync}, no RDB; every XADD and XACK answered`,
    values,
    missing: () => (versionOf(PROGRAM, '--version') === undefined ? `${PROGRAM} is not installed` : undefined),
    async start(directory) {
      const port = await freePort()
      const options = { port, bind: '127.0.0.1', dir: directory, appendonly: 'yes', appendfsync: fsync, save: '' }
      const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
      const server = await ServerUnderTest.start({ program: PROGRAM, args, port })
      return {
        server,
        publisher: { end: 'redis-publisher', port, values },
        consumer: { end: 'redis-consumer', port, values },
      }
    },
  }
}
