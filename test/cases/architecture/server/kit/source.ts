// A source declares what it needs instead of importing the server's parts.
import type { server } from '../start/server.ts'

export type SourceContext = typeof server
