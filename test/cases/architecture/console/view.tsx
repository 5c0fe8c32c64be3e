import '../client/consumer.ts'
import '../protocol/link/tcp.ts'

export const view = 1
