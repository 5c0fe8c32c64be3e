// The console is a consumer: client/browser.ts is all that it knows.
import '../client/consumer.ts'
import '../protocol/link/tcp.ts'

export const view = 1
