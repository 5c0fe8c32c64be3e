/** One end of a `durable` run as a process: gets ready, waits for `go`, does its job, tells when it began and ended. */
import { openClientConsumer } from '../client-consumer.ts'
import { openCinnabarConsumer } from '../durable-consumer.ts'
import { openSmonPublisher } from '../durable-publisher.ts'
import { openMqttConsumer, openMqttPublisher } from '../peers/mqtt-ends.ts'
import { openNatsConsumer, openNatsPublisher } from '../peers/nats-ends.ts'
import { openRedisConsumer, openRedisPublisher } from '../peers/redis-ends.ts'
import type { EndName, Job, OpenEnd, Told } from './end.ts'

const ends: Readonly<Record<EndName, OpenEnd>> = {
  'smon-publisher': openSmonPublisher,
  'cinnabar-consumer': openCinnabarConsumer,
  'client-consumer': openClientConsumer,
  'redis-publisher': openRedisPublisher,
  'redis-consumer': openRedisConsumer,
  'nats-publisher': openNatsPublisher,
  'nats-consumer': openNatsConsumer,
  'mqtt-publisher': openMqttPublisher,
  'mqtt-consumer': openMqttConsumer,
}

function tell(message: Told): void {
  process.send?.(message)
}

function seconds(): number {
  return Number(process.hrtime.bigint()) / 1e9
}

const job = JSON.parse(process.argv[2] ?? '') as Job
const end = await ends[job.end](job)
process.once('message', async () => {
  const before = process.cpuUsage()
  const began = seconds()
  const outcome = await end.run()
  const ended = seconds()
  const { user, system } = process.cpuUsage(before)
  tell({ kind: 'done', began, ended, cpuSeconds: (user + system) / 1e6, ...outcome })
})
// A publisher that left early would be a source that has gone, which is an event of its own.
process.once('disconnect', () => end.close())
tell({ kind: 'ready' })
