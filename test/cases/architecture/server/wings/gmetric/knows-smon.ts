// A wing knows no other wing.
import { sensor } from '../smon/sensor.ts'

export const sensors = [sensor]
