/** The thread of the SQLite store: passes the messages of the server's side to its service. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import {
  type FromWorker,
  type PostMessage,
  type ServiceOptions,
  StorageService,
  serialized,
  type ToWorker,
} from './service.ts'

if (parentPort !== null) run(parentPort, workerData as ServiceOptions)

function run(port: MessagePort, options: ServiceOptions): void {
  const post: PostMessage = (message: FromWorker, transfer: ArrayBuffer[] = []): void =>
    port.postMessage(message, transfer)
  try {
    serve(port, options, post)
  } catch (error) {
    post({ type: 'refused', error: serialized(error, options.directory) })
    port.close()
  }
}

function serve(port: MessagePort, options: ServiceOptions, post: PostMessage): void {
  const service: StorageService = new StorageService(options, {
    durable: ({ number }, room) => post({ type: 'durable', number, room }),
    full: () => post({ type: 'full' }),
    room: () => post({ type: 'room' }),
    failed: (error) => post({ type: 'failed', error: serialized(error, options.directory) }),
  })
  port.on('message', (message: ToWorker) => {
    if (message.type === 'write') service.write(message.batch)
    else if (message.type !== 'close') service.answer(message, post)
    else {
      service.close()
      port.close()
    }
  })
  post({ type: 'opened', recovered: service.recover() })
  service.writer.start()
}
