// protocol/ outside protocol/link/ is free of node:.
import type { Socket } from 'node:net'

export type Peer = Socket
