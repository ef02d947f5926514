from tests.servers.dynamodb import dynamodb_local
from threadline.testing.store_laws import StoreLaws


class TestLocal(StoreLaws):
    durable = True

    def open(self, folder):
        return dynamodb_local().open(folder)
