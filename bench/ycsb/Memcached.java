// SPDX-License-Identifier: GPL-2.0-only

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.internal.OperationFuture;

import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's binding to memcached, with a connection for each thread. A record is one
 * item: the number of fields, then name and value of each.
 */
public class Memcached extends DB {
    /** Longer than any request takes in a guest that swaps. */
    private static final long TIMEOUT_MS = 60_000;

    private MemcachedClient client;

    @Override
    public void init() throws DBException {
        String host = getProperties().getProperty("memcached.host", "127.0.0.1");
        int port = Integer.parseInt(getProperties().getProperty("memcached.port", "11211"));
        BinaryConnectionFactory factory = new BinaryConnectionFactory() {
            @Override
            public long getOperationTimeout() {
                return TIMEOUT_MS;
            }

            @Override
            public boolean isDaemon() {
                return true;
            }
        };
        try {
            client = new MemcachedClient(
                    factory, Collections.singletonList(new InetSocketAddress(host, port)));
        } catch (IOException e) {
            throw new DBException(e);
        }
    }

    @Override
    public void cleanup() {
        client.shutdown(1, TimeUnit.SECONDS);
    }

    @Override
    public Status read(
            String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        try {
            Object item = client.get(name(table, key));
            if (item == null) {
                return Status.NOT_FOUND;
            }
            unpack((byte[]) item, fields, result);
            return Status.OK;
        } catch (RuntimeException | IOException e) {
            return failed(e);
        }
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        return store(() -> client.set(name(table, key), 0, pack(values)));
    }

    /** Replaces the whole record, so YCSB must run with `writeallfields=true`. */
    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        return store(() -> client.replace(name(table, key), 0, pack(values)));
    }

    @Override
    public Status delete(String table, String key) {
        return store(() -> client.delete(name(table, key)));
    }

    @Override
    public Status scan(String table, String start, int count, Set<String> fields,
            Vector<java.util.HashMap<String, ByteIterator>> result) {
        return Status.NOT_IMPLEMENTED;
    }

    private interface Request {
        OperationFuture<Boolean> send() throws IOException;
    }

    private static Status store(Request request) {
        try {
            return request.send().get(TIMEOUT_MS, TimeUnit.MILLISECONDS)
                    ? Status.OK : Status.ERROR;
        } catch (InterruptedException | ExecutionException | TimeoutException
                | RuntimeException | IOException e) {
            return failed(e);
        }
    }

    private static Status failed(Exception e) {
        System.err.println("memcached: " + e);
        return Status.ERROR;
    }

    private static String name(String table, String key) {
        return table + ":" + key;
    }

    private static byte[] pack(Map<String, ByteIterator> values) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(values.size());
        for (Map.Entry<String, ByteIterator> field : values.entrySet()) {
            byte[] value = field.getValue().toArray();
            out.writeUTF(field.getKey());
            out.writeInt(value.length);
            out.write(value);
        }
        return bytes.toByteArray();
    }

    private static void unpack(byte[] item, Set<String> fields, Map<String, ByteIterator> result)
            throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(item));
        for (int left = in.readInt(); left > 0; left--) {
            String field = in.readUTF();
            byte[] value = new byte[in.readInt()];
            in.readFully(value);
            if (fields == null || fields.contains(field)) {
                result.put(field, new ByteArrayByteIterator(value));
            }
        }
    }
}
